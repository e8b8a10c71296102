/* Limits of a port and of a user, as the sessions that they are for keep them. */
#include "relay/session_limits.h"

#include <time.h>

#include "base/log.h"
#include "relay/engine_internal.h"
#include "relay/session.h"

static struct ss_limiter *port_limiter(const struct ss_session *session)
{
    return session->role->options.limiter;
}

static struct ss_limiter *user_limiter(const struct ss_session *session)
{
    return session->user != NULL ? &session->user->limiter : NULL;
}

static uint64_t now_ns(const struct ss_worker *worker)
{
    return uv_now(&worker->loop) * 1000000;
}

/* The active ones of the two; how many. */
static size_t limiters_of(const struct ss_session *session, struct ss_limiter *list[2])
{
    struct ss_limiter *const both[2] = {port_limiter(session), user_limiter(session)};
    size_t count = 0;

    for (size_t i = 0; i < 2; i++)
        if (ss_limiter_is_active(both[i]))
            list[count++] = both[i];
    return count;
}

static enum ss_limit_reason reason_of(const struct ss_session *session)
{
    struct ss_limiter *list[2];
    size_t count = limiters_of(session, list);
    enum ss_limit_reason reason = SS_LIMIT_NONE;

    for (size_t i = 0; i < count && reason == SS_LIMIT_NONE; i++)
        reason = ss_limiter_reason(list[i], (int64_t)time(NULL));
    return reason;
}

/* All are counted, also while nothing is limited: a limit may be set later. */
bool ss_session_admit(struct ss_session *session)
{
    struct ss_limiter *port = port_limiter(session), *user = user_limiter(session);

    if (reason_of(session) != SS_LIMIT_NONE)
        return false;
    if (port != NULL && !session->in_port) {
        if (!ss_limiter_enter(port))
            return false;
        session->in_port = true;
    }
    if (user != NULL && !session->in_user) {
        if (!ss_limiter_enter(user))
            return false;
        session->in_user = true;
    }
    return true;
}

static void give_back(struct ss_session *session, struct ss_flow *flow)
{
    struct ss_limiter *list[2];
    size_t count = flow->grant != 0 ? limiters_of(session, list) : 0;

    for (size_t i = 0; i < count; i++)
        ss_limiter_return(list[i], flow->grant);
    flow->grant = 0;
}

void ss_session_leave_limits(struct ss_session *session)
{
    give_back(session, &session->up);
    give_back(session, &session->down);
    ss_deadline_stop(&session->up.throttle);
    ss_deadline_stop(&session->down.throttle);
    if (session->in_port)
        ss_limiter_leave(port_limiter(session));
    if (session->in_user)
        ss_limiter_leave(user_limiter(session));
    session->in_port = session->in_user = false;
}

/* From both, or from none. */
static size_t draw(const struct ss_session *session, struct ss_limiter *const list[2], size_t count,
                   bool *wait)
{
    uint64_t now = now_ns(session->worker);
    size_t first = ss_limiter_draw(list[0], SS_GRANT_MAX, now, wait), second;

    if (first == 0 || count == 1)
        return first;
    second = ss_limiter_draw(list[1], first, now, wait);
    ss_limiter_return(list[0], first - second);
    return second;
}

size_t ss_flow_granted(struct ss_flow *flow, size_t want)
{
    struct ss_session *session = flow->session;
    struct ss_limiter *list[2];
    size_t count = limiters_of(session, list);
    bool wait = false;

    if (count == 0 || session->phase < SS_PHASE_DIAL)
        return want;
    if (flow->grant == 0) {
        if (reason_of(session) == SS_LIMIT_NONE)
            flow->grant = (uint32_t)draw(session, list, count, &wait);
        flow->starved = flow->grant == 0;
        flow->waits_for_rate = wait;
    }
    return flow->grant < want ? flow->grant : want;
}

void ss_flow_use_grant(struct ss_flow *flow, size_t len)
{
    struct ss_session *session = flow->session;
    struct ss_limiter *list[2];
    size_t count;

    if (len <= flow->grant) {
        flow->grant -= (uint32_t)len;
        return;
    }
    count = limiters_of(session, list);
    for (size_t i = 0; i < count; i++)
        ss_limiter_charge(list[i], len - flow->grant, now_ns(session->worker));
    flow->grant = 0;
}

void ss_flow_starve(struct ss_flow *flow)
{
    struct ss_session *session = flow->session;

    flow->starved = false;
    if (flow->waits_for_rate) {
        ss_worker_start_deadline(session->worker, &session->worker->throttle, &flow->throttle);
        return;
    }
    ss_log_debug("the limit of a port or user is reached: a session ends");
    /* By a reset, but behind what was granted. */
    ss_session_source_ended(session, flow, true);
}

bool ss_datagram_is_granted(const struct ss_role *role, struct ss_user_counters *user, size_t len,
                            const struct ss_worker *worker)
{
    struct ss_limiter *const both[2] = {role->options.limiter,
                                        user != NULL ? &user->limiter : NULL};

    for (size_t i = 0; i < 2; i++) {
        if (!ss_limiter_is_active(both[i]))
            continue;
        if (ss_limiter_reason(both[i], (int64_t)time(NULL)) == SS_LIMIT_NONE &&
            ss_limiter_take(both[i], len, now_ns(worker)))
            continue;
        if (i == 1 && ss_limiter_is_active(both[0]))
            ss_limiter_return(both[0], len);
        return false;
    }
    return true;
}
