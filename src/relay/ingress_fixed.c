/* The target is configured (ss-tunnel): nothing is learned, every byte is payload. */
#include "relay/ingress.h"

static enum ss_status find(struct ss_session *session, struct ss_target *target)
{
    *target = *session->role->options.fixed_target;
    return SS_OK;
}

const struct ss_ingress ss_ingress_fixed = {
    .up = SS_FLOW_COPY,
    .down = SS_FLOW_COPY,
    .find = find,
};
