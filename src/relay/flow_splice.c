/* Reading and writing in one, without the bytes. */
#include "relay/flow_splice.h"

#include "net/splice.h"
#include "relay/engine_internal.h"
#include "relay/session.h"

bool ss_flow_may_splice(const struct ss_flow *flow)
{
    return flow->bulk && flow->work == SS_FLOW_COPY && !flow->no_splice && flow->sink != NULL &&
           flow->rest == NULL && flow->waiting.len == 0;
}

/* What the sink did not take comes out of the pipe, which is everybody's, and waits in blocks. */
static void deliver_rest(struct ss_flow *flow, size_t left)
{
    struct ss_worker *worker = flow->session->worker;
    struct ss_span bytes = {.ptr = worker->read_scratch, .len = left};

    if (ss_splice_take(&worker->splice, bytes.ptr, left))
        ss_flow_deliver(flow, &bytes, 1);
    else
        ss_session_abort(flow->session);
}

void ss_flow_splice(struct ss_flow *flow)
{
    struct ss_session *session = flow->session;
    size_t room = flow->splice_room;
    struct ss_spliced moved;
    enum ss_status status = ss_splice_move(&session->worker->splice, &flow->source->tcp,
                                           &flow->sink->tcp, room, &moved);

    flow->splice_room = 0;
    if (status == SS_ERR_UNSUPPORTED) {
        flow->no_splice = true;
    } else if (status != SS_OK) {
        ss_session_touch(session);
        ss_session_source_ended(session, flow, true);
        return;
    }
    if (moved.got == 0) {
        flow->bulk = false; /* the next time is a read, which tells an end from a pause */
        return;
    }
    ss_session_touch(session);
    /* One move a round of events is fair, so none counts as a full read. */
    flow->full_reads = 0;
    ss_flow_came(flow, moved.got);
    ss_flow_count(flow, moved.got);
    if (moved.left != 0)
        deliver_rest(flow, moved.left);
    else
        flow->narrow = false;
}
