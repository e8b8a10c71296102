/* The target is configured (ss-tunnel): nothing is learned, every byte is payload. */
#include "relay/ingress.h"

const struct ss_ingress ss_ingress_fixed = {
    .up = SS_FLOW_COPY,
    .down = SS_FLOW_COPY,
    .target_is_fixed = true,
};
