/* Sessions and access control lists. */
#include "relay/access.h"

#include <string.h>

#include "acl/acl.h"
#include "base/log.h"
#include "base/pool.h"
#include "relay/engine_internal.h"

/* So long a client's target may be looked up before it is sent through the server instead. */
#define DECIDE_MS 2000

/* A name that is being looked up. */
struct ss_decision {
    struct ss_session *session;
    struct ss_query *query;
    enum ss_acl_route route; /* of a client: SS_ACL_BYPASS or SS_ACL_RESOLVE */
    bool named;              /* of a server: allowed by name */
    struct ss_target target;
};

size_t ss_access_size(void)
{
    return sizeof(struct ss_decision);
}

static const struct ss_acl *acl_of(const struct ss_session *session)
{
    return session->role->options.acl;
}

bool ss_access_refuses_client(struct ss_engine *engine, const struct ss_role *role,
                              const struct ss_ip *client)
{
    char text[SS_IP_TEXT_MAX];
    struct ss_ip ip = *client;

    if (role->options.acl == NULL || role->options.ingress != SS_INGRESS_SHADOWSOCKS ||
        !ss_acl_client_refused(role->options.acl, client))
        return false;
    ss_ip_unmap(&ip);
    ss_log_limited(&engine->denied_log, uv_now(&engine->workers[0].loop), SS_LOG_ERROR,
                   "Access denied from %s", ss_ip_format(&ip, text));
    return true;
}

void ss_access_log(const char *what, const struct ss_target *target)
{
    char text[SS_TARGET_TEXT_MAX];

    if (ss_log_get_level() >= SS_LOG_DEBUG)
        ss_log_info("%s %s", what, ss_target_format(target, text));
}

void ss_access_cancel(struct ss_session *session)
{
    struct ss_decision *decision = session->decision;

    if (decision == NULL)
        return;
    session->decision = NULL;
    ss_resolver_cancel(decision->query);
    ss_pool_release(session->worker->decisions, decision);
}

/* -- a client's targets -- */

static void bypass(struct ss_session *session, const struct ss_target *target,
                   const struct ss_ip *addresses, size_t count)
{
    ss_access_log("bypass", target);
    session->bypassed = true;
    session->up.work = session->down.work = SS_FLOW_COPY;
    ss_session_dial(session, target, addresses, count);
}

/* What can't be looked up here may be known to the server. */
static void proxy(struct ss_session *session, const struct ss_target *target)
{
    ss_session_dial(session, target, NULL, 0);
}

static void client_resolved(struct ss_session *session, const struct ss_decision *decision,
                            enum ss_status status, const struct ss_ip *addresses, size_t count)
{
    if (status == SS_OK &&
        (decision->route == SS_ACL_BYPASS ||
         ss_acl_addresses_route(acl_of(session), addresses, count) == SS_ACL_BYPASS))
        bypass(session, &decision->target, addresses, count);
    else
        proxy(session, &decision->target);
}

/* -- a server's targets -- */

static void refuse(struct ss_session *session, const struct ss_target *target)
{
    ss_access_log("outbound blocked", target);
    ss_session_close(session);
}

/*
 * The address that would be dialled first decides for the name, as it always has. Of the others
 * those that are blocked are left out. Returns how many are allowed.
 */
static size_t allowed_of(const struct ss_acl *acl, bool named, const struct ss_ip *addresses,
                         size_t count, struct ss_ip *allowed)
{
    size_t allowed_count = 0;

    if (count == 0 || ss_acl_outbound_blocked(acl, &addresses[0], named))
        return 0;
    for (size_t i = 0; i < count && allowed_count < SS_ADDRESSES_MAX; i++)
        if (!ss_acl_outbound_blocked(acl, &addresses[i], named))
            allowed[allowed_count++] = addresses[i];
    return allowed_count;
}

static void server_resolved(struct ss_session *session, const struct ss_decision *decision,
                            enum ss_status status, const struct ss_ip *addresses, size_t count)
{
    struct ss_ip allowed[SS_ADDRESSES_MAX];
    size_t allowed_count;

    if (status != SS_OK) {
        ss_session_unreachable(session, status);
        return;
    }
    allowed_count = allowed_of(acl_of(session), decision->named, addresses, count, allowed);
    if (allowed_count == 0)
        refuse(session, &decision->target);
    else
        ss_session_dial(session, &decision->target, allowed, allowed_count);
}

/* -- looking up -- */

static bool is_client(const struct ss_session *session)
{
    return session->role->options.egress == SS_EGRESS_UPSTREAM;
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct ss_decision *slot = owner;
    struct ss_session *session = slot->session;
    const struct ss_decision decision = *slot; /* the session may end in what follows */

    slot->query = NULL;
    ss_access_cancel(session);
    ss_deadline_stop(&session->check);
    if (is_client(session))
        client_resolved(session, &decision, status, addresses, count);
    else
        server_resolved(session, &decision, status, addresses, count);
}

void ss_access_is_late(struct ss_session *session)
{
    const struct ss_target target = session->decision->target;

    ss_access_cancel(session);
    proxy(session, &target);
}

static void look_up(struct ss_session *session, const struct ss_decision *about)
{
    struct ss_worker *worker = session->worker;
    struct ss_decision *decision = ss_pool_acquire(worker->decisions);

    if (decision == NULL) {
        ss_session_abort(session);
        return;
    }
    *decision = *about;
    decision->session = session;
    session->decision = decision;
    decision->query =
        ss_resolver_ask(worker->resolver, decision->target.name, on_resolved, decision);
    if (decision->query == NULL) /* no name that a resolver takes */
        on_resolved(decision, SS_ERR_NOT_FOUND, NULL, 0);
    else if (is_client(session))
        ss_worker_start_attempt(worker, &session->check, DECIDE_MS);
}

/* -- the beginning -- */

static void begin_client(struct ss_session *session, const struct ss_target *target)
{
    struct ss_decision about = {.target = *target};
    struct ss_ip ip;

    if (ss_target_ip(target, &ip)) {
        if (ss_acl_addresses_route(acl_of(session), &ip, 1) == SS_ACL_BYPASS)
            bypass(session, target, &ip, 1);
        else
            proxy(session, target);
        return;
    }
    about.route = ss_acl_name_route(acl_of(session), session->worker->acl_scratch, target->name,
                                    strlen(target->name));
    if (about.route == SS_ACL_PROXY)
        proxy(session, target);
    else
        look_up(session, &about);
}

static void refuse_literal(struct ss_session *session, const struct ss_target *target)
{
    struct ss_engine *engine = session->worker->engine;

    ss_log_limited(&engine->blocked_log, uv_now(&session->worker->loop), SS_LOG_ERROR,
                   "connect error");
    refuse(session, target);
}

static void begin_server(struct ss_session *session, const struct ss_target *target)
{
    struct ss_decision about = {.target = *target};
    struct ss_ip ip;

    if (ss_target_ip(target, &ip)) {
        if (ss_acl_outbound_blocked(acl_of(session), &ip, false))
            refuse_literal(session, target);
        else
            ss_session_dial(session, target, &ip, 1);
        return;
    }
    switch (ss_acl_outbound_name(acl_of(session), session->worker->acl_scratch, target->name,
                                 strlen(target->name))) {
    case SS_ACL_REFUSED:
        refuse(session, target);
        break;
    case SS_ACL_NAMED:
        about.named = true;
        look_up(session, &about);
        break;
    case SS_ACL_BY_ADDRESS:
        look_up(session, &about);
        break;
    }
}

void ss_access_begin(struct ss_session *session, const struct ss_target *target)
{
    /* Where a user's traffic is passed on to stands in the configuration. */
    if (acl_of(session) == NULL || session->passed_on)
        ss_session_dial(session, target, NULL, 0);
    else if (is_client(session))
        begin_client(session, target);
    else
        begin_server(session, target);
}
