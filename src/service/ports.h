/*
 * The ports of a running ss-server that come, change and go one by one, with their users: what a
 * manager asks for. Beside them the server may have ports of its configuration, which these calls
 * neither see nor change.
 *
 * A port is named by its number, which all of its addresses have. A call does all that it says or
 * changes nothing. Nothing here asks a name server or waits for the network, but a listening
 * address given as a name is looked up by the system. All calls are for the thread of loop 0.
 */
#ifndef SS_SERVICE_PORTS_H
#define SS_SERVICE_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "config/config.h"
#include "config/port_spec.h"
#include "relay/engine.h"

struct ss_plugins;
struct ss_ports;
struct ss_service;
struct ss_shared;

/* `service` says what is the same for all ports (sockets, access control list); it is held. The
 * engine has room for all methods. `plugins` is NULL where none can be started. NULL: out of
 * memory. */
struct ss_ports *ss_ports_new(struct ss_engine *engine, struct ss_service *service,
                              struct ss_plugins *plugins);

/* After the engine was freed. NULL is fine. */
void ss_ports_free(struct ss_ports *ports);

/* A reload: what is the same for all is this from here on. SS_ERR_MEMORY: some ports go on as
 * before. */
SS_CHECKED enum ss_status ss_ports_follow(struct ss_ports *ports, struct ss_service *service);

/* Bytes of a text that says in a line why a call failed. */
#define SS_PORTS_ERROR_MAX 512

/*
 * Adds a port, or gives the one with this number another method, key, mode, list of users,
 * addresses or limits. `spec` is copied. Where it has no method, it is that of the service.
 *
 * A port that is there stays open where an address of it stays, with its counters and those of the
 * users whose names stay. Its sessions go on while method and key are the same and, where there are
 * users, their user's key is; all others end.
 *
 * SS_ERR_ARGUMENT (no number, no address, one with another number, an unknown method), SS_ERR_KEY,
 * SS_ERR_UNSUPPORTED (a setting that is not offered); SS_ERR_IN_USE, SS_ERR_PERMISSION,
 * SS_ERR_UNREACHABLE, SS_ERR_NOT_FOUND (a name without an address) and the other errors of the
 * system when it can't be listened on; SS_ERR_MEMORY, SS_ERR_LIMIT. `error` is of
 * SS_PORTS_ERROR_MAX bytes, and filled then; it shows no secret.
 */
SS_CHECKED enum ss_status ss_ports_set(struct ss_ports *ports, const struct ss_port_spec *spec,
                                       char *error);

/* Closes it and ends its sessions. SS_ERR_NOT_FOUND. */
SS_CHECKED enum ss_status ss_ports_remove(struct ss_ports *ports, uint16_t port);

/* All of them. */
void ss_ports_remove_all(struct ss_ports *ports);

/*
 * Adds a user of identity headers, or gives the one of that name another key or another server to
 * be passed on to; sessions of the one before end then. The first user of a port that had none
 * makes it one of users: sessions of the bare key end. SS_ERR_NOT_FOUND (no such port), SS_ERR_KEY,
 * SS_ERR_MEMORY.
 */
SS_CHECKED enum ss_status ss_ports_set_user(struct ss_ports *ports, uint16_t port,
                                            const struct ss_config_identity *user, char *error);

/* Its sessions end. A port whose last user goes serves nobody until there is another.
 * SS_ERR_NOT_FOUND, SS_ERR_MEMORY. */
SS_CHECKED enum ss_status ss_ports_remove_user(struct ss_ports *ports, uint16_t port,
                                               const char *name);

/* Ends all sessions of a port, or of one of its users (`name`; NULL: of all), which stays: new ones
 * may begin at once. SS_ERR_NOT_FOUND, SS_ERR_MEMORY. */
SS_CHECKED enum ss_status ss_ports_end_sessions(struct ss_ports *ports, uint16_t port,
                                                const char *name);

/* A port as it is now. Valid until the next call that changes a port. */
struct ss_port_view {
    uint16_t port;
    const char *method;
    enum ss_mode mode;
    bool has_users;
    size_t user_count;
    struct ss_traffic traffic;   /* since it was added, all of its addresses and transports */
    enum ss_limit_reason reason; /* why it is not served, of its limits */
    uint64_t quota_used;         /* in this period */
    int64_t quota_period_end;    /* Unix time; 0: there is no period */
};

size_t ss_ports_count(const struct ss_ports *ports);

/* By place, 0 to count - 1, in the order in which they were added. False when there is none. */
bool ss_ports_at(const struct ss_ports *ports, size_t index, struct ss_port_view *view);

/* By number. */
bool ss_ports_find(const struct ss_ports *ports, uint16_t port, struct ss_port_view *view);

/* A user as it is now. Valid until the next call that changes a port. */
struct ss_port_user_view {
    const char *name;
    const struct ss_endpoint *next; /* NULL: its traffic is opened here */
    uint64_t rx_bytes, tx_bytes;    /* as in struct ss_traffic */
    uint64_t sessions;              /* opened since it was added */
    enum ss_limit_reason reason;    /* why it is not served, of its limits */
    uint64_t quota_used;            /* as of a port */
    int64_t quota_period_end;
};

/* Ends the sessions of ports and users whose limits are reached. About once a second. */
void ss_ports_enforce(const struct ss_ports *ports);

/* By place, 0 to user_count - 1. */
bool ss_ports_user_at(const struct ss_ports *ports, uint16_t port, size_t index,
                      struct ss_port_user_view *view);

#endif
