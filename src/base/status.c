/* The words for each result. */
#include "base/status.h"

#include <stddef.h>

static const char *const texts[SS_STATUS_COUNT] = {
    [SS_OK] = "ok",
    [SS_NEED_INPUT] = "more input is needed",
    [SS_NEED_ROOM] = "more room is needed",
    [SS_ERR_AUTH] = "authentication failed",
    [SS_ERR_FORMAT] = "malformed",
    [SS_ERR_STALE] = "time stamp out of range",
    [SS_ERR_REPLAY] = "repeated salt or packet",
    [SS_ERR_CLOCK] = "from before the clock was set back",
    [SS_ERR_KEY] = "unusable key",
    [SS_ERR_ARGUMENT] = "invalid setting",
    [SS_ERR_UNSUPPORTED] = "not supported",
    [SS_ERR_NOT_FOUND] = "not found",
    [SS_ERR_MEMORY] = "out of memory",
    [SS_ERR_RANDOM] = "no random bytes",
    [SS_ERR_PERMISSION] = "permission denied",
    [SS_ERR_IN_USE] = "already in use",
    [SS_ERR_LIMIT] = "limit reached",
    [SS_ERR_TIMEOUT] = "timed out",
    [SS_ERR_REFUSED] = "connection refused",
    [SS_ERR_UNREACHABLE] = "unreachable",
    [SS_ERR_RESET] = "connection reset",
    [SS_ERR_IO] = "input/output error",
};

const char *ss_status_text(enum ss_status status)
{
    if ((unsigned)status >= SS_STATUS_COUNT || texts[status] == NULL)
        return "unknown result";
    return texts[status];
}
