/* Answers to `list`, `users` and `ping`: as many datagrams as it takes, each complete in itself. */
#ifndef SS_CONTROL_REPLY_H
#define SS_CONTROL_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "config/port_spec.h"

/* What a datagram holds: below the most that UDP carries, and above the longest entry that a
 * request can make; of `ping`, what its readers are used to. */
#define SS_REPLY_LIST_MAX 60000
#define SS_REPLY_PING_MAX 32000

struct ss_reply_form; /* what stands around and between entries */

struct ss_reply {
    const struct ss_reply_form *form;
    char *text; /* the datagrams, one behind the other */
    size_t len, room;
    size_t *ends; /* of each in `text`; `count` are complete */
    size_t count;
    size_t entries; /* of the one that is being written */
    enum ss_status status;
};

void ss_reply_begin_list(struct ss_reply *reply); /* and users */
void ss_reply_begin_ping(struct ss_reply *reply);

/* Entries; failures are kept for the end. `method` where the request had none; `state` as below. */
void ss_reply_put_port(struct ss_reply *reply, const struct ss_port_spec *spec, const char *method,
                       const char *state);
void ss_reply_put_total(struct ss_reply *reply, uint16_t port, uint64_t total);

/* A user with what it has used; `port` 0 is not shown. */
struct ss_user_use {
    uint64_t rx_bytes, tx_bytes, sessions;
    const char *state; /* which limit is reached, in a word; NULL: none */
};
void ss_reply_put_user(struct ss_reply *reply, uint16_t port, const struct ss_config_identity *user,
                       const struct ss_user_use *use);

/* Afterwards there are `count` datagrams, at least one. */
SS_CHECKED enum ss_status ss_reply_end(struct ss_reply *reply);

struct ss_view ss_reply_datagram(const struct ss_reply *reply, size_t index);

/* Wipes it: there are passwords in a list. */
void ss_reply_free(struct ss_reply *reply);

#endif
