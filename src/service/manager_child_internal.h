/*
 * The one server of all ports: what its runs (manager_child.c) and the conversation with it
 * (manager_talk.c) share. For these two alone.
 */
#ifndef SS_SERVICE_MANAGER_CHILD_INTERNAL_H
#define SS_SERVICE_MANAGER_CHILD_INTERNAL_H

#include "service/manager_internal.h"

#define LONGEST_MS    10000
#define IN_FLIGHT_MAX 64

enum ss_talk_purpose { FOR_RESTORING, FOR_OPERATION, FOR_COUNTING };

/* A request without an answer; the server answers in order. */
struct waiting {
    uint64_t id;
    enum ss_talk_purpose purpose;
    uint16_t port;
};

enum phase { PHASE_DOWN, PHASE_STARTING, PHASE_RESTORING, PHASE_UP };

struct ss_child_state {
    enum phase phase;
    char **words;
    const char *program;
    int their_end, our_end; /* of the run that is to begin; -1 */
    bool kept;              /* the helper knows how to start it */
    bool greeted_once;      /* it is of our kind, whatever happens later */
    bool running;
    int32_t pid;
    unsigned failures, counts;
    uint64_t retry_ms; /* until ports are tried again that could not be listened on */
    uv_timer_t hello, answer, again, count, ready, retry;
    uint64_t next_id;
    struct waiting waiting[IN_FLIGHT_MAX + 2];
    size_t waiting_first, waiting_count;
    uint16_t restore_next; /* ports are gone through by number */
    bool restore_left;
};

/* Begins to talk over our end of its socket pair, which is taken over in any case. */
bool ss_talk_open(struct ss_manager *manager, int fd);
/* Fine when there is none. */
void ss_talk_close(struct ss_manager *manager);

/* Sends a request. False when it can't be sent, or too many have no answer yet. */
bool ss_talk_ask(struct ss_manager *manager, enum ss_talk_purpose purpose, enum ss_wire_verb verb,
                 const struct ss_port_spec *spec);

/* The last that it said: whether it has greeted decides what it is. */
void ss_talk_drain(struct ss_manager *manager);

/* What was asked of a server that is gone. */
void ss_talk_fail(struct ss_manager *manager);

#endif
