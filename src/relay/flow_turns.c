/* The worker's list of flows that stand back. */
#include "relay/flow_turns.h"

#include "relay/flow.h"
#include "relay/session.h"

void ss_flow_let_others_go_first(struct ss_flow *flow)
{
    struct ss_worker *worker = flow->session->worker;

    flow->full_reads = 0;
    ss_flow_pause(flow);
    if (flow->yielding)
        return;
    flow->yielding = true;
    flow->resume_next = worker->resume;
    worker->resume = flow;
}

void ss_flow_resume_all(struct ss_worker *worker)
{
    struct ss_flow *flow = worker->resume;

    worker->resume = NULL;
    while (flow != NULL) {
        struct ss_flow *next = flow->resume_next;

        flow->yielding = false;
        ss_flow_read(flow);
        flow = next;
    }
}

void ss_flow_stop_yielding(struct ss_flow *flow)
{
    struct ss_flow **link = &flow->session->worker->resume;

    if (!flow->yielding)
        return;
    while (*link != flow)
        link = &(*link)->resume_next;
    *link = flow->resume_next;
    flow->yielding = false;
}
