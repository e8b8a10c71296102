/* The target is configured (ss-tunnel): nothing is learned, every byte is payload. */
#include "relay/ingress.h"

static enum ss_status learn(struct ss_session *session, struct ss_span bytes,
                            struct ss_opened *early, struct ss_target *target)
{
    (void)early;
    (void)bytes;
    *target = *session->listener->options.fixed_target;
    return SS_OK;
}

static void end(struct ss_session *session)
{
    ss_session_close(session);
}

static void refuse(struct ss_session *session, enum ss_status status)
{
    (void)status;
    ss_session_close(session);
}

const struct ss_ingress ss_ingress_fixed = {
    .name = "fixed target",
    .up = SS_FLOW_COPY,
    .down = SS_FLOW_COPY,
    .target_is_fixed = true,
    .learn = learn,
    .refuse = refuse,
    .expire = end,
};
