/*
 * Fairness: a flow whose source has more than is its turn stands back until the others of this
 * round of events were served. For this folder alone.
 */
#ifndef SS_RELAY_FLOW_TURNS_H
#define SS_RELAY_FLOW_TURNS_H

struct ss_flow;
struct ss_worker;

/* Pauses the flow until the round is over. */
void ss_flow_let_others_go_first(struct ss_flow *flow);

/* Takes a flow that goes away out of the list. */
void ss_flow_stop_yielding(struct ss_flow *flow);

/* The round is over: those that stood back read again. */
void ss_flow_resume_all(struct ss_worker *worker);

#endif
