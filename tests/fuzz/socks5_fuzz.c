/*
 * SOCKS5 messages are read whole or not at all, however they are cut. The first byte of an input
 * chooses the message; the rest is what a client sends.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "proto/socks5.h"

/* What a message came to; which member counts depends on the kind. */
struct message {
    struct ss_socks5_greeting greeting;
    struct ss_socks5_login login;
    struct ss_socks5_request request;
    struct ss_target target;
    enum ss_socks5_reply refusal;
};

static enum ss_status read_message(int kind, struct ss_reader *in, struct message *message)
{
    memset(message, 0, sizeof *message);
    switch (kind) {
    case 0:
        return ss_socks5_read_greeting(in, &message->greeting);
    case 1:
        return ss_socks5_read_login(in, &message->login);
    case 2:
        return ss_socks5_read_request(in, &message->request, &message->refusal);
    default:
        return ss_socks5_read_udp(in, &message->target);
    }
}

/* Bytes between the members do not count. */
static bool same_target(const struct ss_target *a, const struct ss_target *b)
{
    return a->atyp == b->atyp && a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0 &&
           strcmp(a->name, b->name) == 0;
}

static bool same_message(int kind, const struct message *a, const struct message *b)
{
    switch (kind) {
    case 0:
        return a->greeting.no_auth == b->greeting.no_auth &&
               a->greeting.password == b->greeting.password;
    case 1:
        return strcmp(a->login.user, b->login.user) == 0 &&
               strcmp(a->login.password, b->login.password) == 0;
    case 2:
        return a->request.command == b->request.command &&
               same_target(&a->request.target, &b->request.target);
    default:
        return same_target(&a->target, &b->target);
    }
}

static void check_refusal(int kind, enum ss_status status, const struct message *message,
                          const struct ss_reader *wire)
{
    if (kind != 2)
        return;
    if (status != SS_ERR_FORMAT || wire->ptr[0] != 5) {
        CHECK(message->refusal == SS_SOCKS5_OK);
        return;
    }
    CHECK(message->refusal == SS_SOCKS5_FAILURE || message->refusal == SS_SOCKS5_NO_ATYP);
    CHECK((message->refusal == SS_SOCKS5_FAILURE) ==
          (wire->ptr[3] == SS_ATYP_IPV4 || wire->ptr[3] == SS_ATYP_NAME ||
           wire->ptr[3] == SS_ATYP_IPV6));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct message whole, cut_message;
    struct ss_reader wire, in;
    enum ss_status status;
    size_t used;
    int kind;

    if (len == 0)
        return 0;
    kind = bytes[0] % 4;
    wire = (struct ss_reader){bytes + 1, len - 1};
    in = wire;
    status = read_message(kind, &in, &whole);
    used = wire.len - in.len;
    check_refusal(kind, status, &whole, &wire);
    CHECK(in.ptr == wire.ptr + used);
    CHECK(status == SS_OK || status == SS_NEED_INPUT || status == SS_ERR_FORMAT);
    CHECK((status == SS_OK) == (used > 0));

    /* A good message is incomplete up to its last byte; a wrong one stays wrong once it is. */
    for (size_t cut = 0, wrong = 0; cut <= wire.len && cut <= 1024; cut++) {
        struct ss_reader shorter = {wire.ptr, cut};
        enum ss_status now = read_message(kind, &shorter, &cut_message);

        if (status == SS_OK) {
            CHECK(now == (cut < used ? SS_NEED_INPUT : SS_OK));
            CHECK(cut < used || same_message(kind, &cut_message, &whole));
        } else {
            CHECK(now != SS_OK);
            CHECK(!wrong || now == SS_ERR_FORMAT);
            CHECK(status == SS_ERR_FORMAT || now == SS_NEED_INPUT);
            wrong = now == SS_ERR_FORMAT;
        }
    }
    return 0;
}
