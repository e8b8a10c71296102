/* What the commands of the manager protocol do. */
#include "service/manager_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define REPLY_OK      "ok"
#define REPLY_ERR     "err"
#define REPLY_NO_PORT "port is not available"

static void clear_operation(struct ss_manager *manager)
{
    struct ss_operation *operation = &manager->operation;

    ss_port_spec_clear(&operation->spec);
    ss_port_spec_clear(&operation->change);
    free(operation->stats);
    memset(operation, 0, sizeof *operation);
}

static void refuse(struct ss_manager *manager, const char *action, const char *reason)
{
    ss_log_limited(&manager->refused_limit, uv_now(&manager->loop), SS_LOG_ERROR,
                   "invalid command: %s: %s", action, reason);
}

static void answer(struct ss_manager *manager, const char *text)
{
    if (!manager->operation.own)
        ss_manager_answer(manager, &manager->operation.peer, text);
}

static void answer_list(struct ss_manager *manager, const struct ss_command_peer *peer)
{
    struct ss_reply reply;

    ss_reply_begin_list(&reply);
    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next)
        if (port->served)
            ss_reply_put_port(&reply, &port->spec, manager->config->method, port->state);
    if (ss_reply_end(&reply) != SS_OK)
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    ss_manager_answer_all(manager, peer, &reply);
}

static void answer_ping(struct ss_manager *manager, const struct ss_command_peer *peer)
{
    struct ss_reply reply;

    ss_reply_begin_ping(&reply);
    for (const struct ss_managed *port = manager->first; port != NULL; port = port->next)
        if (port->served)
            ss_reply_put_total(&reply, port->spec.port, port->total_before + port->total_now);
    if (ss_reply_end(&reply) != SS_OK)
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    ss_manager_answer_all(manager, peer, &reply);
}

static void put_users(struct ss_reply *reply, const struct ss_managed *port, bool of_all)
{
    for (size_t i = 0; i < port->spec.server.identity_count && i < port->use_count; i++) {
        const struct ss_use_count *count = &port->uses[i];
        const struct ss_user_use use = {count->before.rx_bytes + count->now.rx_bytes,
                                        count->before.tx_bytes + count->now.tx_bytes,
                                        count->before.sessions + count->now.sessions,
                                        count->now.state};

        ss_reply_put_user(reply, of_all ? port->spec.port : 0, &port->spec.server.identities[i],
                          &use);
    }
}

static void answer_users(struct ss_manager *manager, uint16_t number,
                         const struct ss_command_peer *peer)
{
    const struct ss_managed *one = number != 0 ? ss_managed_find(manager, number) : NULL;
    struct ss_reply reply;

    ss_reply_begin_list(&reply);
    if (one != NULL)
        put_users(&reply, one, false);
    for (const struct ss_managed *port = manager->first; number == 0 && port != NULL;
         port = port->next)
        put_users(&reply, port, true);
    if (ss_reply_end(&reply) != SS_OK)
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    ss_manager_answer_all(manager, peer, &reply);
}

/* From here on the counter goes on from what was told. */
static void set_totals(struct ss_manager *manager)
{
    const struct ss_operation *operation = &manager->operation;

    for (size_t i = 0; i < operation->stat_count; i++) {
        struct ss_managed *port = ss_managed_find(manager, operation->stats[i].port);

        if (port == NULL)
            continue;
        port->total_before = operation->stats[i].total - port->total_now;
        ss_log_debug("update traffic %llu for port %u",
                     (unsigned long long)operation->stats[i].total, port->spec.port);
    }
}

static void port_is_served(struct ss_manager *manager)
{
    struct ss_port_spec *spec = &manager->operation.spec;
    struct ss_managed *port;

    if (!manager->operation.own)
        ss_manager_record(manager, SS_RECORD_ADD, spec);
    port = ss_managed_put(manager, spec);
    if (port == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return;
    }
    port->configured = manager->operation.own;
    port->served = true;
}

/* A port of the configuration that can't be had now: it is tried again, unless it is there as it
 * was before. */
static void port_is_wanted(struct ss_manager *manager)
{
    struct ss_managed *port = ss_managed_find(manager, manager->operation.spec.port);

    if (port == NULL)
        port = ss_managed_put(manager, &manager->operation.spec);
    if (port == NULL)
        return;
    port->configured = true;
    if (manager->backend == &ss_backend_child)
        ss_child_retry_later(manager);
}

static void users_have_changed(struct ss_manager *manager)
{
    struct ss_operation *operation = &manager->operation;
    struct ss_managed *port;

    ss_manager_record(manager,
                      operation->command == SS_COMMAND_ADD_USER ? SS_RECORD_ADD_USER
                                                                : SS_RECORD_DEL_USER,
                      &operation->change);
    port = ss_managed_put(manager, &operation->spec);
    if (port != NULL)
        port->users_changed = true;
    else
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
}

static void port_is_gone(struct ss_manager *manager)
{
    const struct ss_port_spec *spec = &manager->operation.spec;
    struct ss_managed *port = ss_managed_find(manager, spec->port);

    if (port == NULL)
        return;
    ss_manager_record(manager, SS_RECORD_REMOVE, spec);
    ss_managed_drop(manager, port);
}

/* Whether the operation has done what it was for. */
static bool conclude(struct ss_manager *manager, enum ss_wire_result result)
{
    switch (manager->operation.command) {
    case SS_COMMAND_ADD:
        if (result == SS_WIRE_OK)
            port_is_served(manager);
        else if (manager->operation.own && result == SS_WIRE_NO_PORT)
            port_is_wanted(manager);
        return result == SS_WIRE_OK;
    case SS_COMMAND_REMOVE: /* a server that is gone does not serve it either */
        port_is_gone(manager);
        return true;
    case SS_COMMAND_ADD_USER:
    case SS_COMMAND_DEL_USER:
        if (result == SS_WIRE_OK)
            users_have_changed(manager);
        return result == SS_WIRE_OK;
    default:
        return true;
    }
}

void ss_manager_done(struct ss_manager *manager, enum ss_wire_result result, const char *reason)
{
    struct ss_operation *operation = &manager->operation;
    uint16_t number = operation->spec.port;
    struct ss_command_peer peer = operation->peer;

    switch (operation->command) {
    case SS_COMMAND_PING:
        answer_ping(manager, &peer);
        break;
    case SS_COMMAND_LIST:
        answer_list(manager, &peer);
        break;
    case SS_COMMAND_USERS:
        answer_users(manager, number, &peer);
        break;
    case SS_COMMAND_STAT:
        set_totals(manager);
        break;
    default:
        if (conclude(manager, result)) {
            answer(manager, REPLY_OK);
        } else {
            ss_log_error("port %u: %s", number, reason != NULL ? reason : "it is refused");
            if (result == SS_WIRE_NO_PORT)
                ss_log_error("port is not available, please check.");
            answer(manager, result == SS_WIRE_NO_PORT ? REPLY_NO_PORT : REPLY_ERR);
        }
        break;
    }
    clear_operation(manager);
    ss_manager_watch_socket(manager);
    ss_manager_go_on_reloading(manager);
}

void ss_manager_drop_operation(struct ss_manager *manager)
{
    clear_operation(manager);
}

static void begin(struct ss_manager *manager, struct ss_request *request,
                  const struct ss_command_peer *peer)
{
    struct ss_operation *operation = &manager->operation;

    clear_operation(manager);
    operation->active = true;
    operation->command = request->command;
    operation->peer = *peer;
}

static void set_port(struct ss_manager *manager)
{
    struct ss_operation *operation = &manager->operation;
    const struct ss_config *config = manager->config;

    for (size_t i = 0; i < config->host_count; i++)
        ss_log_info("try to bind interface: %s, port: %u", config->hosts[i].host,
                    operation->spec.port);
    manager->backend->set(manager, &operation->spec,
                          ss_managed_find(manager, operation->spec.port));
}

bool ss_manager_set_own(struct ss_manager *manager, const struct ss_port_spec *spec)
{
    struct ss_operation *operation = &manager->operation;

    clear_operation(manager);
    if (ss_port_spec_copy(&operation->spec, spec) != SS_OK)
        return false;
    operation->active = operation->own = true;
    operation->command = SS_COMMAND_ADD;
    ss_manager_watch_socket(manager);
    set_port(manager);
    return true;
}

void ss_manager_remove_own(struct ss_manager *manager, const struct ss_managed *port)
{
    struct ss_operation *operation = &manager->operation;

    clear_operation(manager);
    operation->active = operation->own = true;
    operation->command = SS_COMMAND_REMOVE;
    operation->spec.port = port->spec.port;
    ss_manager_watch_socket(manager);
    manager->backend->remove(manager, port);
}

static void begin_add(struct ss_manager *manager, struct ss_request *request)
{
    struct ss_operation *operation = &manager->operation;
    struct ss_reason reason;

    if (!ss_manager_check_spec(manager->config, &request->spec, &reason)) {
        refuse(manager, request->action, reason.text);
        answer(manager, REPLY_ERR);
        clear_operation(manager);
        return;
    }
    operation->spec = request->spec;
    memset(&request->spec, 0, sizeof request->spec);
    set_port(manager);
}

static void begin_remove(struct ss_manager *manager, struct ss_request *request)
{
    struct ss_operation *operation = &manager->operation;
    const struct ss_managed *port = ss_managed_find(manager, request->spec.port);

    operation->spec = request->spec;
    memset(&request->spec, 0, sizeof request->spec);
    if (port == NULL) /* which is as asked for */
        ss_manager_done(manager, SS_WIRE_OK, NULL);
    else
        manager->backend->remove(manager, port);
}

/* The port with its users changed. False when memory is out. */
static bool change_users(struct ss_port_spec *spec, struct ss_operation *operation,
                         const struct ss_managed *port)
{
    struct ss_config_server *change = &operation->change.server;
    struct ss_port_spec copy = {0};
    bool good = ss_port_spec_copy(spec, &port->spec) == SS_OK &&
                ss_port_spec_copy(&copy, &operation->change) == SS_OK;

    for (size_t i = 0; good && i < change->identity_count; i++) {
        size_t at = ss_port_user_find(&spec->server, change->identities[i].name);

        if (operation->command == SS_COMMAND_ADD_USER)
            good = ss_port_user_put(&spec->server, &copy.server.identities[i]) == SS_OK;
        else if (at < spec->server.identity_count)
            ss_port_user_drop(&spec->server, at);
    }
    spec->of_users = spec->of_users || spec->server.identity_count != 0;
    ss_port_spec_clear(&copy);
    return good;
}

static void begin_users(struct ss_manager *manager, struct ss_request *request)
{
    struct ss_operation *operation = &manager->operation;
    const struct ss_managed *port = ss_managed_find(manager, request->spec.port);
    const char *refused = NULL;
    struct ss_reason reason;

    operation->change = request->spec;
    memset(&request->spec, 0, sizeof request->spec);
    if (port == NULL)
        refused = "there is no such port";
    else if (!change_users(&operation->spec, operation, port))
        refused = ss_status_text(SS_ERR_MEMORY);
    else if (!ss_manager_check_spec(manager->config, &operation->spec, &reason))
        refused = reason.text;
    if (refused == NULL) {
        manager->backend->change_users(manager, operation->command, &operation->spec,
                                       &operation->change);
        return;
    }
    refuse(manager, request->action, refused);
    answer(manager, REPLY_ERR);
    clear_operation(manager);
}

static void carry_out(struct ss_manager *manager, struct ss_request *request,
                      const struct ss_command_peer *peer)
{
    struct ss_operation *operation = &manager->operation;

    begin(manager, request, peer);
    switch (request->command) {
    case SS_COMMAND_ADD:
        begin_add(manager, request);
        break;
    case SS_COMMAND_REMOVE:
        begin_remove(manager, request);
        break;
    case SS_COMMAND_ADD_USER:
    case SS_COMMAND_DEL_USER:
        begin_users(manager, request);
        break;
    case SS_COMMAND_STAT:
        operation->stats = request->stats;
        operation->stat_count = request->stat_count;
        request->stats = NULL;
        manager->backend->refresh(manager);
        break;
    default: /* LIST, PING, USERS */
        operation->spec.port = request->spec.port;
        manager->backend->refresh(manager);
        break;
    }
}

void ss_manager_handle(struct ss_manager *manager, size_t len, const struct ss_command_peer *peer)
{
    struct ss_request request;
    struct ss_reason reason;
    enum ss_status status = ss_request_parse(&request, manager->datagram, len, &reason);

    if (request.command == SS_COMMAND_UNKNOWN)
        ss_log_limited(&manager->unknown_limit, uv_now(&manager->loop), SS_LOG_WARN,
                       "unknown command '%s' gets no answer", request.action);
    else if (status != SS_OK) {
        refuse(manager, request.action, reason.text);
        if (request.command != SS_COMMAND_STAT)
            ss_manager_answer(manager, peer, status == SS_ERR_ARGUMENT ? REPLY_NO_PORT : REPLY_ERR);
    } else if (request.command != SS_COMMAND_NONE) {
        carry_out(manager, &request, peer);
    }
    ss_request_clear(&request);
}
