/* Which channel new lookups go to, and what becomes of those before it. */
#include "resolver/servers.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "resolver/watched_file.h"

#define RESOLV_CONF_MAX ((size_t)64 << 10) /* bytes */

/* Questions that may go out from the same ports while there is no pause: who wants to forge answers
 * has to guess them. */
#define ASKED_MAX 256

/* So long nothing may come before new lookups go to another channel, and before those that wait
 * for this one are ended, where another has to have its place. */
#define SILENT_MS     1000
#define SILENT_MAX_MS 3000

/* Sockets at once: one of UDP and one of TCP to each server, for the channel in use and for the one
 * before it, which ends what it was asked. */
#define SOCKETS_A_SERVER 4

struct ss_servers {
    uv_loop_t *loop;
    struct ss_servers_events events;
    void *owner;
    bool from_file;
    struct ss_watched_file file;
    struct ss_channel_options options; /* with the servers of now */
    struct ss_channel *current;
    struct ss_channel *other;    /* to the same servers, or NULL: not needed so far */
    struct ss_channel *draining; /* to the servers before, or NULL */
    uv_timer_t patience;         /* runs while there is one, so that its silence is noticed */
    unsigned open_parts;         /* the timer and the channels, until they have closed */
    uint32_t sockets_left;
    bool closing;
};

/* Its lookups end, and are asked for again elsewhere if someone still waits. */
static void discard(struct ss_channel **channel)
{
    if (*channel != NULL)
        ss_channel_close(*channel);
    *channel = NULL;
}

static void stop_draining(struct ss_servers *servers)
{
    uv_timer_stop(&servers->patience);
    discard(&servers->draining);
}

static void drain(struct ss_servers *servers, struct ss_channel *channel);

static void on_patience(uv_timer_t *timer)
{
    struct ss_servers *servers = timer->data;

    if (ss_channel_silent_ms(servers->draining) >= SILENT_MS)
        stop_draining(servers);
    else
        drain(servers, servers->draining);
}

/* Lets the channel end what it was asked, for as long as anything comes. */
static void drain(struct ss_servers *servers, struct ss_channel *channel)
{
    const uint64_t silent_ms = ss_channel_silent_ms(channel);

    servers->draining = channel;
    uv_timer_start(&servers->patience, on_patience,
                   silent_ms < SILENT_MS ? SILENT_MS - silent_ms : 0, 0);
}

static void on_worked(void *owner, struct ss_channel *channel)
{
    struct ss_servers *servers = owner;

    if (channel == servers->draining && ss_channel_is_idle(channel))
        stop_draining(servers);
    servers->events.worked(servers->owner);
}

static void on_part_closed(struct ss_servers *servers)
{
    if (--servers->open_parts != 0)
        return;
    servers->events.closed(servers->owner);
    free(servers);
}

static void on_timer_closed(uv_handle_t *timer)
{
    on_part_closed(timer->data);
}

static void on_closed(void *owner, struct ss_channel *channel)
{
    struct ss_servers *servers = owner;

    (void)channel;
    if (!servers->closing)
        servers->events.worked(servers->owner);
    on_part_closed(servers);
}

static enum ss_status open_channel(struct ss_servers *servers, struct ss_channel **out)
{
    static const struct ss_channel_events events = {on_worked, on_closed};
    enum ss_status status = ss_channel_new(out, servers->loop, &servers->options, &events, servers);

    if (status == SS_OK)
        servers->open_parts++;
    return status;
}

static uint32_t sockets_for(size_t servers)
{
    return SOCKETS_A_SERVER * (uint32_t)(servers != 0 ? servers : 1);
}

uint32_t ss_servers_descriptors(const char *nameservers)
{
    struct ss_nameservers list = {.count = SS_NAMESERVERS_SYSTEM};

    if (nameservers != NULL && ss_nameservers_read(&list, nameservers) != SS_OK)
        list.count = SS_NAMESERVERS_MAX;
    return sockets_for(list.count) + 1;
}

/* Reads the file if it is new. False when it names the servers that we have, or none: a program
 * that is about to write it should not leave us without. */
static bool read_file(struct ss_servers *servers)
{
    struct ss_nameservers found = {.count = 0};
    enum ss_status status;
    size_t len;
    char *text;

    if (ss_watched_file_look(&servers->file, uv_now(servers->loop), &text, &len, &status) ==
        SS_FILE_READ)
        ss_nameservers_read_resolv_conf(&found, text, len);
    free(text);
    if (status != SS_OK)
        ss_log_warn("%s: %s; the name servers known before are kept", servers->file.path,
                    ss_status_text(status));
    if (found.count == 0 || ss_nameservers_equal(&found, &servers->options.servers))
        return false;
    servers->options.servers = found;
    return true;
}

bool ss_servers_check(struct ss_servers *servers)
{
    const struct ss_nameservers before = servers->options.servers;
    struct ss_channel *fresh;
    char text[SS_NAMESERVERS_TEXT_MAX];
    enum ss_status status;

    if (!servers->from_file || servers->closing)
        return false;
    if (!read_file(servers))
        return false;
    ss_nameservers_format(&servers->options.servers, true, text);
    status = open_channel(servers, &fresh);
    if (status != SS_OK) {
        ss_log_warn("name servers %s of %s can't be used: %s", text, servers->file.path,
                    ss_status_text(status));
        servers->options.servers = before;
        return false;
    }
    ss_log_debug("using nameserver: %s", text);
    stop_draining(servers);
    discard(&servers->other);
    if (ss_channel_is_idle(servers->current))
        discard(&servers->current);
    else
        drain(servers, servers->current);
    servers->current = fresh;
    return true;
}

void ss_servers_choose(struct ss_servers *servers)
{
    struct ss_channel *current = servers->current;
    const bool silent = ss_channel_silent_ms(current) >= SILENT_MS;

    if (!silent && ss_channel_asked(current) < ASKED_MAX)
        return;
    if (servers->other == NULL && open_channel(servers, &servers->other) != SS_OK) {
        servers->other = NULL;
        return;
    }
    if (silent && ss_channel_silent_ms(servers->other) >= SILENT_MAX_MS)
        ss_channel_cancel(servers->other);
    if (!ss_channel_is_idle(servers->other))
        return;
    servers->current = servers->other;
    servers->other = current;
}

bool ss_servers_have_room(struct ss_servers *servers)
{
    return ss_channel_has_room(servers->current);
}

void ss_servers_ask(struct ss_servers *servers, struct ss_channel_lookup *lookup)
{
    ss_channel_ask(servers->current, lookup);
}

enum ss_status ss_servers_new(struct ss_servers **out, uv_loop_t *loop,
                              const struct ss_servers_options *options,
                              const struct ss_servers_events *events, void *owner)
{
    struct ss_servers *servers = calloc(1, sizeof *servers);
    enum ss_status status = SS_OK;

    *out = NULL;
    if (servers == NULL)
        return SS_ERR_MEMORY;
    servers->loop = loop;
    servers->events = *events;
    servers->owner = owner;
    servers->options.timeout_ms = options->timeout_ms;
    servers->options.tries = options->tries;
    servers->options.mark = options->mark;
    servers->options.sockets_left = &servers->sockets_left;
    servers->from_file = options->nameservers == NULL;
    ss_watched_file_init(&servers->file, options->resolv_path, RESOLV_CONF_MAX);
    if (servers->from_file) {
        (void)read_file(servers);
        servers->sockets_left = sockets_for(SS_NAMESERVERS_SYSTEM);
    } else {
        status = ss_nameservers_read(&servers->options.servers, options->nameservers);
        servers->sockets_left = sockets_for(servers->options.servers.count);
    }
    if (status == SS_OK)
        status = open_channel(servers, &servers->current);
    if (status != SS_OK) {
        free(servers);
        return status;
    }
    uv_timer_init(loop, &servers->patience);
    servers->patience.data = servers;
    servers->open_parts++;
    *out = servers;
    return SS_OK;
}

void ss_servers_close(struct ss_servers *servers)
{
    servers->closing = true;
    uv_close((uv_handle_t *)&servers->patience, on_timer_closed);
    discard(&servers->draining);
    discard(&servers->other);
    ss_channel_close(servers->current);
}
