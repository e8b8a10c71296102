/*
 * A datagram of the manager protocol as a command with its arguments. Both grammars are taken, that
 * of the classic manager (`add: {...}`) and that of the Rust one (`add:{...}`), and `add {...}`
 * too.
 */
#ifndef SS_CONTROL_REQUEST_H
#define SS_CONTROL_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "config/port_spec.h"

/* Longer datagrams get no reply, as ever. */
#define SS_REQUEST_MAX 32767

enum ss_command {
    SS_COMMAND_NONE,    /* nothing but blanks */
    SS_COMMAND_UNKNOWN, /* gets no reply */
    SS_COMMAND_ADD,
    SS_COMMAND_REMOVE,
    SS_COMMAND_LIST,
    SS_COMMAND_PING,
    SS_COMMAND_STAT, /* gets no reply */
    SS_COMMAND_ADD_USER,
    SS_COMMAND_DEL_USER,
    SS_COMMAND_USERS
};

/* A port's counter, as `stat` sets it. */
struct ss_stat {
    uint16_t port;
    uint64_t total; /* bytes */
};

#define SS_ACTION_MAX 16 /* bytes of the word, with the NUL; a longer one is cut */

struct ss_request {
    enum ss_command command;
    char action[SS_ACTION_MAX]; /* the word, for log lines; control bytes as they came */
    /* ADD, REMOVE, ADD_USER and DEL_USER: `port` is not 0; USERS: 0 is all of them. ADD_USER and
     * DEL_USER: server.identities are the users in question, of which the latter needs only the
     * names. */
    struct ss_port_spec spec;
    struct ss_stat *stats; /* STAT */
    size_t stat_count;
};

/*
 * `datagram` is changed; it need not end in a NUL, and what stands behind one is left out.
 *
 * SS_OK
 * SS_ERR_FORMAT, SS_ERR_MEMORY  a known command that is answered with `err`; *reason
 * SS_ERR_ARGUMENT               the same with `port is not available`
 *
 * *request is to be cleared in any case.
 */
SS_CHECKED enum ss_status ss_request_parse(struct ss_request *request, char *datagram, size_t len,
                                           struct ss_reason *reason);

void ss_request_clear(struct ss_request *request);

#endif
