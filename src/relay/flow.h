/*
 * One direction of a session: bytes from a source to a sink, sealed, opened or as they are, with
 * its own end. A flow reads only while its sink takes what comes: what the kernel does not take
 * waits in blocks, and reading stops until they are out.
 */
#ifndef SS_RELAY_FLOW_H
#define SS_RELAY_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"
#include "base/span.h"
#include "relay/block.h"
#include "relay/conn.h"

struct ss_session;

enum ss_flow_work { SS_FLOW_COPY, SS_FLOW_SEAL, SS_FLOW_OPEN };

struct ss_flow {
    struct ss_session *session;
    struct ss_conn *source;
    struct ss_conn *sink;  /* NULL until it is connected */
    struct ss_block *rest; /* an incomplete message: comes again in front of what is read next */
    struct ss_block_queue
        waiting;                 /* for the sink; before there is one, what came early, unsealed */
    struct ss_deadline throttle; /* while the rate of a port or user has none */
    uint32_t splice_room;        /* bytes that are to be spliced instead of read, or 0 */
    uint32_t grant;              /* bytes that may be relayed, where there are limits */
    enum ss_flow_work work;
    uint8_t full_reads; /* one after the other, for fairness */
    bool reading;       /* libuv reads the source */
    bool paused;    /* and is to stop when more comes: going on before costs no system call then */
    bool writing;   /* `waiting` is with libuv */
    bool narrow;    /* the last write was short: read less until one goes out whole */
    bool bulk;      /* the last read was a large one: splicing is worth it, */
    bool no_splice; /* unless the system refuses */
    bool ended;     /* the source has said FIN, or is gone */
    bool broken;    /* the source ended as it must not: the sink must not see a normal end */
    bool moved;     /* bytes have come from the source */
    bool suspect;   /* the source failed when it was written to: its end is not a normal one */
    bool shut;      /* the end was passed on, or the sink is gone */
    bool yielding;  /* reads nothing this time: others go first */
    bool starved;   /* limits let nothing be read; */
    bool waits_for_rate; /* but soon again */
};

/* Lets libuv watch a connection that is being made for both: to be told apart from connecting,
 * reading would cost two system calls more. Nothing comes before the connection is there and has a
 * flow. */
void ss_flow_read_ahead(struct ss_conn *connecting);

/* Begins to read from the source, unless bytes wait or it has ended. */
void ss_flow_read(struct ss_flow *flow);
void ss_flow_pause(struct ss_flow *flow);

/*
 * Sends bytes that are ready for the sink, or keeps those that it does not take. Before there is a
 * sink all are kept. May end the session: look at its phase afterwards.
 */
void ss_flow_deliver(struct ss_flow *flow, const struct ss_span *spans, size_t count);

/*
 * The sink is there: sends what came early (sealing it, where the flow seals) and goes on. With
 * `header_now` a sealing flow sends its header even if no payload has come.
 */
void ss_flow_connect(struct ss_flow *flow, struct ss_conn *sink, bool header_now);

/* Sends a sealing flow's header without payload, unless it was sent. The sink must be there. */
void ss_flow_send_header(struct ss_flow *flow);

/* Bytes have come from the source. */
void ss_flow_came(struct ss_flow *flow, size_t len);

/* Counts payload, for the listener and the user. */
void ss_flow_count(struct ss_flow *flow, size_t len);

/* Puts `len` bytes aside as the incomplete message, in the place of the one before. False when
 * there is no block. */
bool ss_flow_keep_rest(struct ss_flow *flow, const uint8_t *bytes, size_t len);

void ss_flow_drop_rest(struct ss_flow *flow);

/* The source has ended: normally, or broken. Passes it on once nothing waits. */
void ss_flow_end(struct ss_flow *flow, bool broken);

/* Passes the end on if nothing is in the way. A broken end waits until the sink has got all that
 * was sent before it: resetting drops what the kernel still holds. */
void ss_flow_pass_end_on(struct ss_flow *flow);

/* Gives back the blocks that are not with libuv. */
void ss_flow_clear(struct ss_flow *flow);

#endif
