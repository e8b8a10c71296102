/* Ports that come, change and go one by one. */
#include "service/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/ports_internal.h"
#include "service/users.h"

#define NUMBERS ((size_t)UINT16_MAX + 1)

struct ss_ports *ss_ports_new(struct ss_engine *engine, struct ss_service *service,
                              struct ss_plugins *plugins)
{
    struct ss_ports *ports = calloc(1, sizeof *ports);

    if (ports == NULL)
        return NULL;
    ports->places = calloc(NUMBERS, sizeof *ports->places);
    if (ports->places == NULL) {
        free(ports);
        return NULL;
    }
    ports->engine = engine;
    ports->service = service;
    ss_service_hold(service);
    ports->plugins = plugins;
    return ports;
}

void ss_ports_free(struct ss_ports *ports)
{
    if (ports == NULL)
        return;
    for (size_t i = 0; i < ports->count; i++)
        ss_port_free(ports->list[i]);
    ss_service_release(ports->service);
    free(ports->list);
    free(ports->places);
    free(ports);
}

static struct ss_port *find(const struct ss_ports *ports, uint16_t number)
{
    return ports->places[number] != 0 ? ports->list[ports->places[number] - 1] : NULL;
}

/* There can't be more than numbers. */
static bool append(struct ss_ports *ports, struct ss_port *port)
{
    struct ss_port **grown = realloc(ports->list, (ports->count + 1) * sizeof(struct ss_port *));

    if (grown == NULL)
        return false;
    ports->list = grown;
    grown[ports->count++] = port;
    ports->places[port->spec.port] = (uint16_t)ports->count;
    return true;
}

static void take_out(struct ss_ports *ports, uint16_t number)
{
    size_t place = ports->places[number] - 1u;

    ports->places[number] = 0;
    memmove(&ports->list[place], &ports->list[place + 1],
            (ports->count - place - 1) * sizeof(struct ss_port *));
    ports->count--;
    for (size_t i = place; i < ports->count; i++)
        ports->places[ports->list[i]->spec.port] = (uint16_t)(i + 1);
}

/* Of a spec that is the caller's. */
static enum ss_status become(struct ss_ports *ports, struct ss_port *port,
                             struct ss_port_spec *spec, char *error)
{
    struct ss_port *made = port != NULL ? port : ss_port_new(ports->engine);
    enum ss_status status = SS_ERR_MEMORY;

    if (made != NULL)
        status = ss_port_become(ports, made, spec, error);
    else
        snprintf(error, SS_PORTS_ERROR_MAX, "%s", ss_status_text(status));
    if (port != NULL || made == NULL)
        return status;
    if (status == SS_OK && !append(ports, made)) {
        ss_port_close(made);
        status = SS_ERR_MEMORY;
        snprintf(error, SS_PORTS_ERROR_MAX, "%s", ss_status_text(status));
    }
    if (status != SS_OK)
        ss_port_free(made);
    return status;
}

enum ss_status ss_ports_set(struct ss_ports *ports, const struct ss_port_spec *spec, char *error)
{
    struct ss_port_spec copy = {0};
    enum ss_status status = ss_port_spec_copy(&copy, spec);

    error[0] = '\0';
    if (status == SS_OK)
        status = become(ports, find(ports, spec->port), &copy, error);
    else
        snprintf(error, SS_PORTS_ERROR_MAX, "%s", ss_status_text(status));
    ss_port_spec_clear(&copy);
    return status;
}

enum ss_status ss_ports_remove(struct ss_ports *ports, uint16_t number)
{
    struct ss_port *port = find(ports, number);

    if (port == NULL)
        return SS_ERR_NOT_FOUND;
    take_out(ports, number);
    ss_port_close(port);
    ss_port_free(port);
    return SS_OK;
}

void ss_ports_remove_all(struct ss_ports *ports)
{
    for (size_t i = 0; i < ports->count; i++) {
        ports->places[ports->list[i]->spec.port] = 0;
        ss_port_close(ports->list[i]);
        ss_port_free(ports->list[i]);
    }
    ports->count = 0;
}

enum ss_status ss_ports_follow(struct ss_ports *ports, struct ss_service *service)
{
    enum ss_status worst = SS_OK;

    ss_service_hold(service);
    ss_service_release(ports->service);
    ports->service = service;
    for (size_t i = 0; i < ports->count; i++) {
        enum ss_status status = ss_port_follow(ports, ports->list[i]);

        if (status != SS_OK)
            worst = status;
    }
    return worst;
}

/* -- users -- */

/* The tag of a user with this name; NULL: there is none. */
static const void *tag_of(const struct ss_port *port, const char *name)
{
    struct ss_users *users = ss_profile_hold_users(port->keying.profile);
    const struct ss_user *user = users != NULL ? ss_service_users_find(users, name) : NULL;
    const void *tag = user != NULL ? user->tag : NULL;

    ss_users_release(users);
    return tag;
}

static bool has_users(const struct ss_port *port)
{
    struct ss_users *users = ss_profile_hold_users(port->keying.profile);

    ss_users_release(users);
    return users != NULL;
}

/* It becomes another port, one of users. */
static enum ss_status begin_users(struct ss_ports *ports, struct ss_port *port,
                                  const struct ss_config_identity *user, char *error)
{
    struct ss_port_spec copy = {0};
    struct ss_config_identity own = {0};
    enum ss_status status = ss_port_spec_copy(&copy, &port->spec);

    if (status == SS_OK)
        status = ss_port_user_copy(&own, user);
    if (status == SS_OK)
        status = ss_port_user_put(&copy.server, &own);
    if (status != SS_OK)
        snprintf(error, SS_PORTS_ERROR_MAX, "%s", ss_status_text(status));
    else
        status = become(ports, port, &copy, error);
    ss_port_user_clear(&own);
    ss_port_spec_clear(&copy);
    return status;
}

enum ss_status ss_ports_set_user(struct ss_ports *ports, uint16_t number,
                                 const struct ss_config_identity *user, char *error)
{
    struct ss_port *port = find(ports, number);

    snprintf(error, SS_PORTS_ERROR_MAX, "there is no port %u", number);
    if (port == NULL)
        return SS_ERR_NOT_FOUND;
    return has_users(port) ? ss_port_change_user(ports, port, user, NULL, error)
                           : begin_users(ports, port, user, error);
}

enum ss_status ss_ports_remove_user(struct ss_ports *ports, uint16_t number, const char *name)
{
    struct ss_port *port = find(ports, number);
    char error[SS_PORTS_ERROR_MAX];

    if (port == NULL || tag_of(port, name) == NULL)
        return SS_ERR_NOT_FOUND;
    return ss_port_change_user(ports, port, NULL, name, error);
}

enum ss_status ss_ports_end_sessions(struct ss_ports *ports, uint16_t number, const char *name)
{
    struct ss_port *port = find(ports, number);
    struct ss_sessions_of which;

    if (port == NULL)
        return SS_ERR_NOT_FOUND;
    which = (struct ss_sessions_of){.profile = port->keying.profile};
    if (name != NULL) {
        which.user = tag_of(port, name);
        if (which.user == NULL)
            return SS_ERR_NOT_FOUND;
    }
    return ss_engine_end_sessions(ports->engine, &which);
}

/* -- what there is -- */

size_t ss_ports_count(const struct ss_ports *ports)
{
    return ports->count;
}

bool ss_ports_at(const struct ss_ports *ports, size_t index, struct ss_port_view *view)
{
    const struct ss_port *port;
    struct ss_users *users;

    if (index >= ports->count)
        return false;
    port = ports->list[index];
    users = ss_profile_hold_users(port->keying.profile);
    *view = (struct ss_port_view){
        .port = port->spec.port,
        .method = port->method->name,
        .mode = port->spec.server.mode,
        .has_users = users != NULL,
        .reason = ss_limiter_reason(&port->keying.use->limiter, (int64_t)time(NULL)),
        .user_count = users != NULL ? ss_users_count(users) : 0};
    if (port->spec.server.limits.quota != 0)
        view->quota_used = ss_limiter_used(&port->keying.use->limiter, &view->quota_period_end);
    ss_sockets_traffic(&port->sockets, &view->traffic);
    ss_users_release(users);
    return true;
}

bool ss_ports_find(const struct ss_ports *ports, uint16_t number, struct ss_port_view *view)
{
    return ports->places[number] != 0 && ss_ports_at(ports, ports->places[number] - 1u, view);
}

bool ss_ports_user_at(const struct ss_ports *ports, uint16_t number, size_t index,
                      struct ss_port_user_view *view)
{
    const struct ss_port *port = find(ports, number);
    struct ss_users *users = port != NULL ? ss_profile_hold_users(port->keying.profile) : NULL;
    const struct ss_user *user = users != NULL ? ss_users_get(users, index) : NULL;
    struct ss_user_counters *counters = user != NULL ? user->tag : NULL;

    if (counters != NULL)
        *view = (struct ss_port_user_view){
            .name = user->name,
            .next = user->next,
            .reason = ss_limiter_reason(&counters->limiter, (int64_t)time(NULL)),
            .rx_bytes = atomic_load_explicit(&counters->rx_bytes, memory_order_relaxed),
            .tx_bytes = atomic_load_explicit(&counters->tx_bytes, memory_order_relaxed),
            .sessions = atomic_load_explicit(&counters->sessions, memory_order_relaxed)};
    if (counters != NULL &&
        atomic_load_explicit(&counters->limiter.quota, memory_order_relaxed) != 0)
        view->quota_used = ss_limiter_used(&counters->limiter, &view->quota_period_end);
    ss_users_release(users); /* the profile holds the list until a port changes */
    return counters != NULL;
}

void ss_ports_enforce(const struct ss_ports *ports)
{
    for (size_t i = 0; i < ports->count; i++)
        ss_keying_enforce(&ports->list[i]->keying, ports->engine);
}
