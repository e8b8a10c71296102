/* The target is in the client's SOCKS5 request (RFC 1928). */
#include "relay/ingress.h"

#include <string.h>

#include "base/log.h"
#include "crypto/secret.h"
#include "net/tcp.h"
#include "proto/socks5.h"

enum step { STEP_GREETING, STEP_LOGIN, STEP_REQUEST };

/* Replies are short: a client whose window does not take one is not reading at all. */
static enum ss_status answer(struct ss_session *session, const uint8_t *bytes, size_t len)
{
    struct ss_span reply = {.ptr = (uint8_t *)(uintptr_t)bytes, .len = len};
    size_t written;
    enum ss_status status = ss_tcp_write_now(&session->inbound->tcp, &reply, 1, &written);

    if (status == SS_OK && written != len)
        status = SS_ERR_RESET;
    return status;
}

static enum ss_status answer_choice(struct ss_session *session, enum ss_socks5_method method)
{
    uint8_t bytes[2];
    struct ss_writer out = {.ptr = bytes, .len = sizeof bytes};
    enum ss_status status = ss_socks5_write_choice(&out, method);

    return status != SS_OK ? status : answer(session, bytes, sizeof bytes - out.len);
}

static enum ss_status answer_request(struct ss_session *session, enum ss_socks5_reply reply,
                                     const struct ss_addr *bound)
{
    uint8_t bytes[32];
    struct ss_writer out = {.ptr = bytes, .len = sizeof bytes};
    enum ss_status status = ss_socks5_write_reply(&out, reply, bound);

    return status != SS_OK ? status : answer(session, bytes, sizeof bytes - out.len);
}

static enum ss_status learn_greeting(struct ss_session *session, struct ss_reader *in)
{
    struct ss_socks5_greeting greeting;
    enum ss_status status = ss_socks5_read_greeting(in, &greeting);

    if (status != SS_OK)
        return status;
    if (session->role->options.user_count != 0) {
        session->ingress_step = STEP_LOGIN;
        if (greeting.password)
            return answer_choice(session, SS_SOCKS5_PASSWORD);
    } else {
        session->ingress_step = STEP_REQUEST;
        if (greeting.no_auth)
            return answer_choice(session, SS_SOCKS5_NO_AUTH);
    }
    status = answer_choice(session, SS_SOCKS5_NO_METHOD);
    return status != SS_OK ? status : SS_ERR_UNSUPPORTED;
}

/* Both texts whole, in the same time whatever they are: the buffers are compared, not the strings.
 */
static bool is_known(const struct ss_role_options *options, const struct ss_socks5_login *login)
{
    bool known = false;

    for (size_t i = 0; i < options->user_count; i++) {
        struct ss_socks5_login user = {0};
        bool same;

        strncpy(user.user, options->users[i].name, sizeof user.user - 1);
        strncpy(user.password, options->users[i].password, sizeof user.password - 1);
        same = ss_equal_constant_time(user.user, login->user, sizeof user.user);
        same = ss_equal_constant_time(user.password, login->password, sizeof user.password) && same;
        known = known || same;
        ss_wipe(&user, sizeof user);
    }
    return known;
}

static enum ss_status learn_login(struct ss_session *session, struct ss_reader *in)
{
    struct ss_socks5_login login = {0};
    uint8_t bytes[2];
    struct ss_writer out = {.ptr = bytes, .len = sizeof bytes};
    enum ss_status status = ss_socks5_read_login(in, &login);
    bool known;

    if (status != SS_OK)
        return status;
    known = is_known(&session->role->options, &login);
    ss_wipe(&login, sizeof login);
    session->ingress_step = STEP_REQUEST;
    status = ss_socks5_write_login_status(&out, known ? 0 : 1);
    if (status == SS_OK)
        status = answer(session, bytes, sizeof bytes - out.len);
    return status != SS_OK || known ? status : SS_ERR_AUTH;
}

static enum ss_status learn_request(struct ss_session *session, struct ss_reader *in,
                                    struct ss_target *target)
{
    struct ss_socks5_request request;
    enum ss_socks5_reply refusal = SS_SOCKS5_OK;
    enum ss_status status = ss_socks5_read_request(in, &request, &refusal);

    if (status == SS_NEED_INPUT)
        return status;
    if (status == SS_OK && request.command == SS_SOCKS5_UDP_ASSOCIATE &&
        ss_session_associate(session, &request.target))
        return SS_OK; /* the phase says that there is nothing to dial */
    if (status == SS_OK && request.command != SS_SOCKS5_CONNECT) {
        refusal = SS_SOCKS5_NO_COMMAND;
        status = SS_ERR_UNSUPPORTED;
    }
    if (status != SS_OK) {
        if (refusal != SS_SOCKS5_OK && answer_request(session, refusal, NULL) != SS_OK)
            return SS_ERR_RESET;
        return status;
    }
    *target = request.target;
    /* Before the server is reached: so the client's first bytes can travel with the header. */
    return answer_request(session, SS_SOCKS5_OK, NULL);
}

enum ss_status ss_socks5_answer_associate(struct ss_session *session, const struct ss_addr *bound)
{
    return answer_request(session, SS_SOCKS5_OK, bound);
}

static enum ss_status learn(struct ss_session *session, struct ss_span bytes,
                            struct ss_opened *early, struct ss_target *target)
{
    struct ss_reader in = {.ptr = bytes.ptr, .len = bytes.len};
    enum ss_status status = SS_OK;

    if (session->ingress_step == STEP_GREETING)
        status = learn_greeting(session, &in);
    if (status == SS_OK && session->ingress_step == STEP_LOGIN)
        status = learn_login(session, &in);
    if (status == SS_OK)
        status = learn_request(session, &in, target);
    if (status == SS_NEED_INPUT)
        early->rest_len = in.len;
    if (status == SS_OK && in.len != 0) {
        early->payload[0] = (struct ss_span){.ptr = bytes.ptr + bytes.len - in.len, .len = in.len};
        early->count = 1;
        early->payload_len = in.len;
    }
    return status;
}

static void refuse(struct ss_session *session, enum ss_status status)
{
    ss_log_debug("SOCKS5 request refused: %s", ss_status_text(status));
    ss_session_close(session);
}

static void expire(struct ss_session *session)
{
    ss_log_debug("no SOCKS5 request within the time");
    ss_session_close(session);
}

const struct ss_ingress ss_ingress_socks5 = {
    .up = SS_FLOW_COPY,
    .down = SS_FLOW_COPY,
    .learn = learn,
    .refuse = refuse,
    .expire = expire,
};
