/* The socket that ss-manager takes commands from and answers over. */
#include "service/manager_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/socket.h"
#include "sys/names.h"

#define SOCKET_NAME ".ss-manager.socks"

/* Commands a wake-up, so that signals and servers have their turn. */
#define COMMANDS_A_TURN 32

/* An answer in several datagrams waits for its reader between them, so often and so long. One who
 * has not even room for the first does not read. */
#define LATE_PAUSE_MS  10
#define LATE_TRIES_MAX 100

#define EXIT_LOCAL_SOCKET 1
#define EXIT_FATAL        255

/* Host and port make it UDP, as the classic manager has it; anything else is a path. */
static bool find_udp(struct ss_manager *manager, const char *text)
{
    const struct ss_config *config = manager->config;
    struct ss_endpoint endpoint;
    const char *error_text;
    struct ss_addr *udp = &manager->address.udp;

    if (ss_endpoint_parse(&endpoint, text) != SS_OK)
        return false;
    if (config->manager_port != 0 &&
        ss_config_source(config, offsetof(struct ss_config, manager_address)) != SS_SOURCE_LINE)
        endpoint.port = config->manager_port;
    if (endpoint.port == 0)
        return false;
    udp->port = endpoint.port;
    if (ss_names_first(&udp->ip, endpoint.host, &error_text) != SS_OK) {
        ss_log_error("getaddrinfo: %s", error_text);
        udp->ip.family = SS_FAMILY_NONE;
    }
    return true;
}

bool ss_manager_find_address(struct ss_manager *manager)
{
    const char *text = manager->config->manager_address;
    char path[4096];

    if (text == NULL) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", manager->path, SOCKET_NAME) >= sizeof path)
            return false;
        ss_log_info("using the default manager address: %s", path);
        text = path;
    }
    free(manager->path);
    manager->path = strdup(text);
    manager->address_text = strdup(text);
    if (manager->path == NULL || manager->address_text == NULL)
        return false;
    manager->address.path = manager->path;
    if (!find_udp(manager, text))
        return true;
    if (manager->address.udp.ip.family == SS_FAMILY_NONE)
        return false;
    if (strchr(text, ':') == NULL) { /* the port came apart */
        size_t size = strlen(text) + sizeof ":65535";

        free(manager->address_text);
        manager->address_text = malloc(size);
        if (manager->address_text == NULL)
            return false;
        snprintf(manager->address_text, size, "%s:%u", text, manager->address.udp.port);
    }
    return true;
}

static void too_large(struct ss_manager *manager, size_t len)
{
    ss_log_limited(&manager->refused_limit, uv_now(&manager->loop), SS_LOG_ERROR,
                   "too large request: %zu", len);
}

static bool may_read(const struct ss_manager *manager)
{
    return ss_manager_is_free(manager) && manager->late.count == 0 &&
           !ss_manager_is_reloading(manager);
}

static void on_command(uv_poll_t *poll, int status, int events)
{
    struct ss_manager *manager = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < COMMANDS_A_TURN; i++) {
        struct ss_command_peer peer;
        size_t len = 0;

        if (!may_read(manager))
            break;
        if (ss_command_receive(&manager->socket, manager->datagram, SS_REQUEST_MAX, &len, &peer) !=
            SS_OK)
            break;
        if (len > SS_REQUEST_MAX)
            too_large(manager, len);
        else
            ss_manager_handle(manager, len, &peer);
    }
    ss_manager_watch_socket(manager);
}

void ss_manager_watch_socket(struct ss_manager *manager)
{
    if (!manager->socket_open)
        return;
    if (may_read(manager))
        uv_poll_start(&manager->socket_poll, UV_READABLE, on_command);
    else
        uv_poll_stop(&manager->socket_poll);
}

static void log_unsent(struct ss_manager *manager, const char *error_text)
{
    ss_log_limited(&manager->answer_limit, uv_now(&manager->loop), SS_LOG_WARN,
                   "a client of the manager can't be answered: %s", error_text);
}

void ss_manager_answer(struct ss_manager *manager, const struct ss_command_peer *peer,
                       const char *text)
{
    const char *error_text = "";

    if (!ss_command_peer_is_named(peer))
        log_unsent(manager, "its socket has no name");
    else if (ss_command_answer(&manager->socket, peer,
                               (struct ss_view){(const uint8_t *)text, strlen(text)},
                               &error_text) != SS_OK)
        log_unsent(manager, error_text);
}

static void end_late(struct ss_manager *manager)
{
    ss_reply_free(&manager->late);
    manager->late_next = 0;
    ss_manager_watch_socket(manager);
}

static void on_late(uv_timer_t *timer);

static void send_late(struct ss_manager *manager)
{
    const char *error_text = "";

    while (manager->late_next < manager->late.count) {
        enum ss_status status =
            ss_command_answer(&manager->socket, &manager->late_peer,
                              ss_reply_datagram(&manager->late, manager->late_next), &error_text);

        if (status == SS_NEED_ROOM && manager->late_next != 0 &&
            ++manager->late_tries < LATE_TRIES_MAX) {
            uv_timer_start(&manager->late_timer, on_late, LATE_PAUSE_MS, 0);
            return;
        }
        if (status != SS_OK) {
            log_unsent(manager, error_text);
            break;
        }
        manager->late_next++;
    }
    end_late(manager);
}

static void on_late(uv_timer_t *timer)
{
    send_late(timer->data);
}

void ss_manager_answer_all(struct ss_manager *manager, const struct ss_command_peer *peer,
                           struct ss_reply *reply)
{
    if (reply->status != SS_OK || !ss_command_peer_is_named(peer)) {
        log_unsent(manager, reply->status != SS_OK ? ss_status_text(reply->status)
                                                   : "its socket has no name");
        ss_reply_free(reply);
        return;
    }
    manager->late = *reply;
    manager->late_peer = *peer;
    manager->late_next = manager->late_tries = 0;
    memset(reply, 0, sizeof *reply);
    send_late(manager);
}

bool ss_manager_open_socket(struct ss_manager *manager)
{
    const char *mode_text = manager->config->manager_socket_mode;
    int mode = mode_text != NULL ? (int)strtol(mode_text, NULL, 8) : -1;
    bool local = manager->address.udp.ip.family == SS_FAMILY_NONE;
    const char *error_text = "";

    uv_timer_init(&manager->loop, &manager->late_timer);
    manager->late_timer.data = manager;
    if (ss_command_open(&manager->socket, &manager->address, mode, &error_text) != SS_OK) {
        ss_log_error("bind: %s", error_text);
        if (!local) {
            ss_log_error("cannot bind");
            ss_log_error("socket");
        }
        ss_log_error("the manager can't listen at %s", manager->address_text);
        manager->exit_code = local ? EXIT_LOCAL_SOCKET : EXIT_FATAL;
        return false;
    }
    if (uv_poll_init(&manager->loop, &manager->socket_poll, manager->socket.fd) != 0) {
        ss_log_error("the manager's socket can't be watched");
        ss_command_close(&manager->socket, &manager->address);
        return false;
    }
    manager->socket_poll.data = manager;
    manager->socket_open = true;
    ss_manager_watch_socket(manager);
    return true;
}

void ss_manager_close_socket(struct ss_manager *manager)
{
    if (!manager->socket_open)
        return;
    uv_poll_stop(&manager->socket_poll);
    uv_close((uv_handle_t *)&manager->socket_poll, NULL);
    uv_timer_stop(&manager->late_timer);
    manager->socket_open = false;
    ss_reply_free(&manager->late);
    ss_command_close(&manager->socket, &manager->address);
}
