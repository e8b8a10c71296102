/*
 * The target is in the opened Shadowsocks header. What is not authenticated learns nothing: not
 * even how many bytes were looked at.
 */
#include "relay/ingress.h"

#include <time.h>

#include "base/log.h"
#include "relay/engine_internal.h"

static void count_user(struct ss_session *session, const struct ss_user *user)
{
    if (user == NULL || user->tag == NULL)
        return;
    session->user = user->tag;
    atomic_fetch_add_explicit(&session->user->sessions, 1, memory_order_relaxed);
}

/* A user whose traffic another server opens: both directions go on as they are (SIP023). */
static bool passes_on(struct ss_session *session, const struct ss_user *user)
{
    if (user == NULL || user->next == NULL)
        return false;
    session->passed_on = true;
    session->up.work = session->down.work = SS_FLOW_COPY;
    return true;
}

static enum ss_status learn(struct ss_session *session, struct ss_span bytes,
                            struct ss_opened *early, struct ss_target *target)
{
    struct ss_codec *codec = ss_session_codec(session);
    enum ss_status status = ss_codec_open(codec, bytes, (int64_t)time(NULL), early);
    const struct ss_target *opened;

    if (status != SS_OK)
        return status;
    if (session->user == NULL)
        count_user(session, ss_codec_user(codec));
    if (passes_on(session, ss_codec_user(codec)))
        return ss_target_from_host(target, ss_codec_user(codec)->next->host,
                                   ss_codec_user(codec)->next->port);
    opened = ss_codec_target(codec);
    if (opened == NULL)
        return SS_NEED_INPUT;
    *target = *opened;
    return SS_OK;
}

static bool resets(const struct ss_session *session)
{
    return ss_profile_method(session->role->options.profile)->family == SS_METHODS_2022;
}

static void refuse(struct ss_session *session, enum ss_status status)
{
    struct ss_log_limit *limit = &session->worker->engine->handshake_log;
    uint64_t now_ms = uv_now(&session->worker->loop);
    char peer[SS_IP_TEXT_MAX];

    ss_session_log_opening(session, status);
    if (status == SS_ERR_REPLAY)
        ss_log_limited(limit, now_ms, SS_LOG_ERROR, "crypto: AEAD: repeat salt detected");
    ss_log_limited(limit, now_ms, SS_LOG_ERROR, "failed to handshake with %s: %s",
                   ss_ip_format(&session->peer.ip, peer),
                   status == SS_ERR_FORMAT ? "invalid address type" : "authentication error");
    if (resets(session))
        ss_session_abort(session);
    else
        ss_session_enter(session, SS_PHASE_REFUSED);
}

static void expire(struct ss_session *session)
{
    ss_log_debug("no complete request within the time");
    if (resets(session))
        ss_session_abort(session);
    else
        ss_session_close(session);
}

const struct ss_ingress ss_ingress_shadowsocks = {
    .up = SS_FLOW_OPEN,
    .down = SS_FLOW_SEAL,
    .learn = learn,
    .refuse = refuse,
    .expire = expire,
};
