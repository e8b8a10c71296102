/*
 * What ss-manager and its one ss-server say to each other over the server's standard input and
 * output: JSON objects, a line each.
 *
 *   server   {"hello":"ss-server","version":"…","protocol":1}
 *   manager  {"id":7,"add":{"server_port":8001,"password":"…",…}}
 *   server   {"id":7,"result":"ok"}
 *
 * Requests are answered in their order. Both sides skip members that they do not know.
 */
#ifndef SS_CONTROL_WIRE_H
#define SS_CONTROL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "config/port_spec.h"

/* Longer lines end the conversation. A port with very many users is the longest. */
#define SS_WIRE_LINE_MAX ((size_t)64 << 20)

#define SS_WIRE_PROTOCOL 1

struct json_t;

enum ss_wire_verb {
    SS_WIRE_ADD,      /* a port, or in place of the one with its number */
    SS_WIRE_REMOVE,   /* a port; of one that is not there it is fine too */
    SS_WIRE_ADD_USER, /* users of a port: server.identities */
    SS_WIRE_DEL_USER,
    SS_WIRE_STATS, /* counters, of what has changed since they were asked for last */
    SS_WIRE_LIST,  /* the ports that are served */
    SS_WIRE_UNKNOWN
};

enum ss_wire_result {
    SS_WIRE_OK,
    SS_WIRE_REFUSED, /* what was asked for can't be: a method, a key, an unknown port */
    SS_WIRE_NO_PORT  /* the port can't be listened on */
};

/* Manager to server. A line to be wiped and freed; NULL when memory is out. */
char *ss_wire_request_text(uint64_t id, enum ss_wire_verb verb, const struct ss_port_spec *spec);

struct ss_wire_request {
    uint64_t id;
    enum ss_wire_verb verb;
    struct ss_port_spec spec;
};

/* SS_ERR_FORMAT and *reason, with the id where it could be read (else 0). *request is to be cleared
 * in any case. The line is changed. */
SS_CHECKED enum ss_status ss_wire_request_read(struct ss_wire_request *request, char *line,
                                               size_t len, struct ss_reason *reason);
void ss_wire_request_clear(struct ss_wire_request *request);

/* What a port, or a user of it, has used. */
struct ss_wire_use {
    uint16_t port;
    const char *user; /* NULL: the port as a whole */
    uint64_t rx_bytes, tx_bytes;
    uint64_t total; /* of a port: as the classic programs count */
    uint64_t sessions;
    uint64_t quota_used; /* where there is a quota */
    int64_t quota_period_end;
    const char *state; /* why it is not served, in a word; NULL: it is */
};

/* Server to manager: collected, then taken as one line. */
struct ss_wire_answer {
    struct json_t *object, *stats;
};

/* `id` 0 is the greeting. */
void ss_wire_answer_begin(struct ss_wire_answer *answer, uint64_t id);
void ss_wire_answer_result(struct ss_wire_answer *answer, enum ss_wire_result result,
                           const char *text);
void ss_wire_answer_use(struct ss_wire_answer *answer, const struct ss_wire_use *use);
/* Without its line end, for ss_json_text_free (config/json.h); NULL when memory is out. The answer
 * is empty then. */
char *ss_wire_answer_text(struct ss_wire_answer *answer);

/* And on the manager's side. */
struct ss_wire_heard {
    bool hello;
    uint64_t id;
    enum ss_wire_result result;
    struct ss_reason reason;
    struct ss_wire_use *uses; /* their texts live as long as this */
    size_t use_count;
    struct json_t *document;
};

/* SS_ERR_FORMAT for what is no line of this conversation. *heard is to be cleared in any case. */
SS_CHECKED enum ss_status ss_wire_answer_read(struct ss_wire_heard *heard, char *line, size_t len);
void ss_wire_heard_clear(struct ss_wire_heard *heard);

#endif
