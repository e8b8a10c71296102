/* Datagram sessions of the 2022 edition: refusals, windows, tables, restarts, users. */
#include "codec/packet.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/random.h"
#include "packet_2022.h"
#include "support.h"
#include "vectors/read.h"
#include "vectors_2022.h"

#define PACKET_MAX 65536
#define NOW        INT64_C(1700000000)

#define CHAIN    "AAECAwQFBgcICQoLDA0ODw==:EBESExQVFhcYGRobHB0eHw=="
#define IPSK_HEX "000102030405060708090a0b0c0d0e0f"
#define UPSK_HEX "101112131415161718191a1b1c1d1e1f"

static uint8_t wire[PACKET_MAX], other[PACKET_MAX], room[PACKET_MAX];
static uint8_t payload[PACKET_MAX], plain[PACKET_MAX];

static const struct ss_method *any_method(void)
{
    return ss_method_find("2022-blake3-aes-128-gcm");
}

/* A client with one association, and a server with its table. */
struct pair {
    struct ss_packet_sessions *sessions;
    struct ss_packet_codec *client, *server;
    struct ss_packet_link *link;
};

static struct pair pair_of(const struct ss_profile *client, const struct ss_profile *server,
                           uint32_t capacity)
{
    struct pair pair = {.sessions = ss_packet_sessions_new(capacity)};

    assert_non_null(pair.sessions);
    pair.client = packet_codec(client, SS_CODEC_CLIENT, NULL);
    pair.server = packet_codec(server, SS_CODEC_SERVER, pair.sessions);
    pair.link = link_of(pair.client, NULL);
    return pair;
}

static void free_pair(struct pair *pair)
{
    free_link(pair->link);
    free_packet_codec_2022(pair->client);
    free_packet_codec_2022(pair->server);
    ss_packet_sessions_free(pair->sessions);
}

static size_t ask(const struct pair *pair, size_t len, uint8_t *out)
{
    return seal_exactly(pair->client, pair->link, packet_address("host.example", 443), payload, len,
                        NOW, out);
}

static enum ss_status serve(const struct pair *pair, const uint8_t *bytes, size_t len,
                            int64_t now_s, struct ss_packet_session **session)
{
    struct ss_packet_opened opened;
    enum ss_status status = open_copy_2022(pair->server, NULL, bytes, len, now_s, &opened, plain);

    if (status == SS_OK)
        assert_string_equal(opened.target.name, "host.example");
    if (session != NULL)
        *session = status == SS_OK ? opened.session : NULL;
    return status;
}

static size_t answer(const struct pair *pair, struct ss_packet_link *link, size_t len, uint8_t *out)
{
    return seal_exactly(pair->server, link, packet_address("192.0.2.9", 443), payload, len, NOW,
                        out);
}

static enum ss_status take(const struct pair *pair, const uint8_t *bytes, size_t len, int64_t now_s)
{
    struct ss_packet_opened opened;

    return open_copy_2022(pair->client, pair->link, bytes, len, now_s, &opened, plain);
}

/* Every bit and every cut of a request and of a reply, and none leaves a trace. */
static void check_refused(const struct ss_profile *client, const struct ss_profile *server)
{
    struct pair pair = pair_of(client, server, 4);
    struct ss_packet_session *session;
    struct ss_packet_link *link = NULL;
    size_t len;

    for (int reply = 0; reply < 2; reply++) {
        len = reply ? answer(&pair, link, 20, wire) : ask(&pair, 20, wire);
        for (size_t bit = 0; bit < len * 8; bit++) {
            enum ss_status status;

            memcpy(other, wire, len);
            other[bit / 8] ^= (uint8_t)(1u << bit % 8);
            status = reply ? take(&pair, other, len, NOW) : serve(&pair, other, len, NOW, NULL);
            assert_int_equal(status, SS_ERR_AUTH);
        }
        for (size_t cut = 0; cut < len; cut++) {
            enum ss_status status =
                reply ? take(&pair, wire, cut, NOW) : serve(&pair, wire, cut, NOW, NULL);

            assert_true(status == SS_ERR_AUTH || (cut < 80 && status == SS_ERR_FORMAT));
        }
        if (reply) {
            assert_int_equal(take(&pair, wire, len, NOW + 31), SS_ERR_STALE);
            assert_int_equal(ss_packet_clock_difference(pair.client), -31);
            assert_int_equal(take(&pair, wire, len, NOW - 30), SS_OK);
            assert_int_equal(take(&pair, wire, len, NOW), SS_ERR_REPLAY);
            free_link(link);
        } else {
            assert_int_equal(serve(&pair, wire, len, NOW - 31, NULL), SS_ERR_STALE);
            assert_int_equal(ss_packet_clock_difference(pair.server), 31);
            assert_int_equal(ss_packet_sessions_count(pair.sessions), 0);
            assert_int_equal(serve(&pair, wire, len, NOW + 30, &session), SS_OK);
            assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_ERR_REPLAY);
            assert_int_equal(ss_packet_sessions_count(pair.sessions), 1);
            link = link_of(pair.server, session);
            /* What comes now is opened by the link, and refused by it as well. */
            len = ask(&pair, 20, wire);
            wire[len - 1] ^= 1;
            assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_ERR_AUTH);
            wire[len - 1] ^= 1;
            assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_OK);
        }
    }
    free_pair(&pair);
}

static void check_method_refuses(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);

    check_refused(profile, profile);
    ss_profile_release(profile);
}

static void a_flipped_bit_or_a_cut_is_refused(void **state)
{
    struct ss_profile *client = client_of(any_method(), NULL, CHAIN);
    struct ss_profile *server = server_of(any_method(), NULL, IPSK_HEX, UPSK_HEX, NULL);

    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_method_refuses);
    check_refused(client, server);
    ss_profile_release(client);
    ss_profile_release(server);
}

/* A server's own reply is no request, nor a request a reply. */
static void check_reflected(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    struct ss_packet_session *session;
    struct ss_packet_link *link;
    size_t len = ask(&pair, 60, wire);
    enum ss_status status;

    status = take(&pair, wire, len, NOW);
    assert_true(status == SS_ERR_FORMAT || status == SS_ERR_AUTH);
    assert_int_equal(serve(&pair, wire, len, NOW, &session), SS_OK);
    link = link_of(pair.server, session);
    len = answer(&pair, link, 60, wire);
    assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_ERR_FORMAT);
    free_link(link);
    free_pair(&pair);
    ss_profile_release(profile);
}

static void nothing_is_taken_back_by_who_sent_it(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_reflected);
}

static void packets_come_once_in_any_order(void **state)
{
    enum { COUNT = 3000, LEN = 50 + 7 + 12 };
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    uint8_t(*packets)[100] = calloc(COUNT, sizeof *packets);
    size_t len = 0;
    struct ss_packet_session *session, *same;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        len = ask(&pair, 5, packets[i]);
    assert_true(len <= 100);
    assert_int_equal(serve(&pair, packets[1000], len, NOW, &session), SS_OK);
    for (size_t i = 0; i < 1000; i += 7)
        assert_int_equal(serve(&pair, packets[i], len, NOW, &same), SS_OK);
    assert_int_equal(serve(&pair, packets[7], len, NOW, NULL), SS_ERR_REPLAY);
    assert_int_equal(serve(&pair, packets[2999], len, NOW, &same), SS_OK);
    assert_ptr_equal(session, same);
    assert_int_equal(serve(&pair, packets[2999 - 1023], len, NOW, &same), SS_OK);
    assert_int_equal(serve(&pair, packets[2999 - 1024], len, NOW, NULL), SS_ERR_REPLAY);
    assert_int_equal(serve(&pair, packets[1], len, NOW, NULL), SS_ERR_REPLAY);
    free(packets);
    free_pair(&pair);
    ss_profile_release(profile);
}

/* A datagram of a session that is a minute old and a second is stale anyway; until then it stays,
 * and is not taken for a new one. */
static void a_session_stays_for_a_minute(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, 2);
    struct ss_packet_link *second = link_of(pair.client, NULL), *third = link_of(pair.client, NULL);
    struct ss_packet_link *kept;
    struct ss_packet_session *session, *other_session;
    struct ss_view address;
    size_t len = ask(&pair, 5, wire), len2, len3;

    (void)state;
    address = packet_address("host.example", 443);
    assert_int_equal(serve(&pair, wire, len, NOW - 30, &session), SS_OK);
    len2 = seal_exactly(pair.client, second, address, payload, 5, NOW, other);
    assert_int_equal(serve(&pair, other, len2, NOW - 20, &other_session), SS_OK);
    assert_ptr_not_equal(session, other_session);
    /* The table is full of sessions that are still remembered. */
    len3 = seal_exactly(pair.client, third, address, payload, 5, NOW, other);
    assert_int_equal(serve(&pair, other, len3, NOW + 30, NULL), SS_ERR_LIMIT);
    assert_int_equal(serve(&pair, wire, len, NOW + 30, NULL), SS_ERR_REPLAY);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 2);
    /* A second later the first may go, and does when room is needed. */
    len3 = seal_exactly(pair.client, third, address, payload, 5, NOW + 31, other);
    assert_int_equal(serve(&pair, other, len3, NOW + 31, &session), SS_OK);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 2);
    assert_int_equal(serve(&pair, wire, len, NOW + 31, NULL), SS_ERR_STALE);

    /* One that an association holds stays whatever the time. */
    kept = link_of(pair.server, session);
    session->owner = &pair;
    for (int64_t later = 1000; later < 5000; later += 1000) {
        struct ss_packet_link *fourth = link_of(pair.client, NULL);

        len = seal_exactly(pair.client, fourth, address, payload, 5, NOW + later, wire);
        assert_int_equal(serve(&pair, wire, len, NOW + later, &other_session), SS_OK);
        assert_ptr_not_equal(session, other_session);
        free_link(fourth);
    }
    len3 = seal_exactly(pair.client, third, address, payload, 5, NOW + 5000, other);
    assert_int_equal(serve(&pair, other, len3, NOW + 5000, &other_session), SS_OK);
    assert_ptr_equal(session, other_session);
    assert_ptr_equal(session->owner, &pair);
    free_link(kept);
    assert_null(session->owner);
    assert_null(session->link);
    free_link(second);
    free_link(third);
    free_pair(&pair);
    ss_profile_release(profile);
}

/* The clock is set back, by a little and by an hour: what came once is not taken again, and
 * sessions that are new are refused only where they can't be told from what was forgotten. */
static void a_clock_that_is_set_back_repeats_no_session(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    struct ss_packet_link *later = link_of(pair.client, NULL), *back = link_of(pair.client, NULL);
    struct ss_packet_session *session;
    struct ss_view address = packet_address("host.example", 443);
    size_t len = ask(&pair, 5, wire), len2;

    (void)state;
    assert_int_equal(serve(&pair, wire, len, NOW - 30, NULL), SS_OK);
    for (int64_t back_s = 1; back_s <= 4096; back_s *= 2)
        assert_int_equal(serve(&pair, wire, len, NOW + 30 - back_s, NULL), SS_ERR_REPLAY);
    /* By an hour: it is still there when its time has come again. */
    for (int64_t now_s = NOW - 3600; now_s <= NOW + 30; now_s += 90) {
        struct ss_packet_link *link = link_of(pair.client, NULL);

        len2 = seal_exactly(pair.client, link, address, payload, 5, now_s, other);
        assert_int_equal(serve(&pair, other, len2, now_s, NULL), SS_OK);
        free_link(link);
    }
    assert_int_equal(serve(&pair, wire, len, NOW - 30, NULL), SS_ERR_REPLAY);
    assert_int_equal(serve(&pair, wire, len, NOW + 30, NULL), SS_ERR_REPLAY);

    /* It is forgotten at last, and then the clock is set back. */
    len2 = seal_exactly(pair.client, later, address, payload, 5, NOW + 400, other);
    assert_int_equal(serve(&pair, other, len2, NOW + 400, &session), SS_OK);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 1);
    assert_int_equal(serve(&pair, wire, len, NOW + 30, NULL), SS_ERR_CLOCK);
    len2 = seal_exactly(pair.client, back, address, payload, 5, NOW + 30, other);
    assert_int_equal(serve(&pair, other, len2, NOW + 30, NULL), SS_ERR_CLOCK);
    /* A session that is known goes on, and new ones as soon as they can be told. */
    len2 = seal_exactly(pair.client, later, address, payload, 5, NOW + 30, other);
    assert_int_equal(serve(&pair, other, len2, NOW + 30, &session), SS_OK);
    len2 = seal_exactly(pair.client, back, address, payload, 5, NOW + 100, other);
    assert_int_equal(serve(&pair, other, len2, NOW + 100, NULL), SS_OK);
    free_link(later);
    free_link(back);
    free_pair(&pair);
    ss_profile_release(profile);
}

/* Replies go on under the same session when the association was closed and made anew. */
static void an_association_may_come_back(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    struct ss_packet_session *session;
    size_t len = ask(&pair, 5, wire);

    (void)state;
    assert_int_equal(serve(&pair, wire, len, NOW, &session), SS_OK);
    for (int i = 0; i < 5; i++) {
        struct ss_packet_link *link = link_of(pair.server, session);

        for (int k = 0; k < 3; k++) {
            len = answer(&pair, link, 100, wire);
            assert_int_equal(take(&pair, wire, len, NOW), SS_OK);
            assert_int_equal(take(&pair, wire, len, NOW), SS_ERR_REPLAY);
        }
        free_link(link);
    }
    free_pair(&pair);
    ss_profile_release(profile);
}

/* A server starts again and has other sessions: one follows another at once, a third only when the
 * first has been silent for as long as its packets are good. */
static void check_restarts(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    static uint8_t asked[300], late[300], answers[4][300];
    size_t asked_len = ask(&pair, 5, asked), late_len = 0, lens[4];

    for (int i = 0; i < 4; i++) { /* each of them a server that knows nothing of the others */
        struct pair again = {.sessions = ss_packet_sessions_new(4)};
        struct ss_packet_session *session;
        struct ss_packet_link *link;

        again.server = packet_codec(profile, SS_CODEC_SERVER, again.sessions);
        assert_int_equal(serve(&again, asked, asked_len, NOW, &session), SS_OK);
        link = link_of(again.server, session);
        lens[i] = answer(&again, link, 9, answers[i]);
        if (i == 0)
            late_len = answer(&again, link, 9, late);
        free_link(link);
        free_packet_codec_2022(again.server);
        ss_packet_sessions_free(again.sessions);
    }
    assert_int_equal(take(&pair, answers[0], lens[0], NOW - 30), SS_OK);
    assert_int_equal(take(&pair, answers[1], lens[1], NOW - 30), SS_OK);
    assert_int_equal(take(&pair, answers[2], lens[2], NOW - 30), SS_ERR_REPLAY);
    assert_int_equal(take(&pair, late, late_len, NOW - 29), SS_OK); /* of the one before */
    assert_int_equal(take(&pair, late, late_len, NOW - 29), SS_ERR_REPLAY);
    assert_int_equal(take(&pair, answers[0], lens[0], NOW - 29), SS_ERR_REPLAY);
    assert_int_equal(take(&pair, answers[2], lens[2], NOW + 30), SS_ERR_REPLAY);
    assert_int_equal(take(&pair, answers[1], lens[1], NOW + 30), SS_ERR_REPLAY);
    /* What was refused left nothing; an hour later all of it is stale. */
    assert_int_equal(take(&pair, answers[2], lens[2], NOW + 3600), SS_ERR_STALE);
    assert_int_equal(take(&pair, answers[0], lens[0], NOW + 3600), SS_ERR_REPLAY);
    free_pair(&pair);
    ss_profile_release(profile);
}

/* A server that knows nothing yet but the packet in `wire`. */
static struct pair another_server(const struct ss_profile *profile, size_t asked_len)
{
    struct pair server = {.sessions = ss_packet_sessions_new(4)};
    struct ss_packet_session *session;

    server.server = packet_codec(profile, SS_CODEC_SERVER, server.sessions);
    assert_int_equal(serve(&server, wire, asked_len, NOW, &session), SS_OK);
    server.link = link_of(server.server, session);
    return server;
}

static void free_server(struct pair *server)
{
    free_link(server->link);
    free_packet_codec_2022(server->server);
    ss_packet_sessions_free(server->sessions);
}

/* The clock of a client is set back behind a server session that it has forgotten. */
static void a_forgotten_server_is_not_heard_again(void **state)
{
    static const struct {
        int server;
        int64_t stamp_s, now_s;
        enum ss_status status;
    } steps[] = {
        {0, 0, 0, SS_OK},
        {1, 1, 1, SS_OK},
        {0, 500, 500, SS_OK}, /* the first goes on for longer than the second */
        {2, 560, 560, SS_ERR_REPLAY},
        {2, 561, 561, SS_OK}, /* the first is forgotten */
        {0, 530, 510, SS_ERR_CLOCK},
        {0, 530, 560, SS_ERR_CLOCK},
        {3, 530, 545, SS_ERR_CLOCK},
        {3, 531, 545, SS_OK},
    };
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, 4), servers[4];
    size_t asked_len = ask(&pair, 5, wire), len;

    (void)state;
    for (int i = 0; i < 4; i++)
        servers[i] = another_server(profile, asked_len);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const struct pair *server = &servers[steps[i].server];

        len = seal_exactly(server->server, server->link, packet_address("192.0.2.9", 443), payload,
                           9, NOW + steps[i].stamp_s, other);
        assert_int_equal(take(&pair, other, len, NOW + steps[i].now_s), steps[i].status);
    }
    for (int i = 0; i < 4; i++)
        free_server(&servers[i]);
    free_pair(&pair);
    ss_profile_release(profile);
}

static void a_server_may_start_again(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_restarts);
}

/* One association after the other on a client, each with a session of its own. */
static void ports_and_associations_are_apart(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, 8);
    struct ss_packet_codec *second_port = packet_codec(profile, SS_CODEC_SERVER, pair.sessions);
    struct ss_packet_link *second = link_of(pair.client, NULL);
    struct ss_packet_session *session;
    struct ss_packet_opened opened;
    struct ss_packet_link *link;
    size_t len = ask(&pair, 5, wire);

    (void)state;
    assert_int_equal(serve(&pair, wire, len, NOW, &session), SS_OK);
    /* The same datagram at another port is another session there. */
    assert_int_equal(open_copy_2022(second_port, NULL, wire, len, NOW, &opened, plain), SS_OK);
    assert_ptr_not_equal(opened.session, session);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 2);
    /* A reply goes to the association that asked. */
    link = link_of(pair.server, session);
    len = answer(&pair, link, 5, wire);
    assert_int_equal(open_copy_2022(pair.client, second, wire, len, NOW, &opened, plain),
                     SS_ERR_REPLAY);
    assert_int_equal(take(&pair, wire, len, NOW), SS_OK);
    free_link(link);
    free_link(second);
    /* A port that goes takes its sessions along, and no others. */
    free_packet_codec_2022(second_port);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 1);
    free_pair(&pair);
    ss_profile_release(profile);
}

static void what_is_missing_is_an_argument_error(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct ss_profile *chain = client_of(any_method(), NULL, CHAIN);
    struct pair pair = pair_of(profile, profile, 8);
    struct ss_packet_codec *bare = packet_codec(profile, SS_CODEC_SERVER, NULL);
    struct ss_packet_payload from = {{payload, 5}, 0, 0, NULL};
    struct ss_packet_opened opened;
    size_t len = ask(&pair, 5, wire), sealed_len;

    (void)state;
    assert_int_equal(open_copy_2022(bare, NULL, wire, len, NOW, &opened, plain), SS_ERR_ARGUMENT);
    assert_int_equal(open_copy_2022(pair.client, NULL, wire, len, NOW, &opened, plain),
                     SS_ERR_ARGUMENT);
    assert_int_equal(ss_packet_seal(pair.client, packet_address("192.0.2.1", 1), &from, NOW,
                                    (struct ss_span){other, sizeof other}, &sealed_len),
                     SS_ERR_ARGUMENT);
    assert_int_equal(sealed_len, 0);
    ss_packet_codec_end(bare);
    assert_int_equal(ss_packet_codec_begin(bare, chain, SS_CODEC_SERVER), SS_ERR_ARGUMENT);
    free_packet_codec_2022(bare);
    free_pair(&pair);
    ss_profile_release(chain);
    ss_profile_release(profile);
}

/* The client's own session and packet IDs are under the first key of the chain, so who has that may
 * name any session; it stays with its user. */
static void a_session_keeps_its_user(void **state)
{
    const struct ss_method *method = any_method();
    struct ss_user_options list[] = {
        {.name = "one", .password = {(const uint8_t *)"EBESExQVFhcYGRobHB0eHw==", 24}},
        {.name = "two", .password = {(const uint8_t *)"ICEiIyQlJicoKSorLC0uLw==", 24}},
    };
    struct ss_profile_options options = {
        .method = method, .password = {(const uint8_t *)"AAECAwQFBgcICQoLDA0ODw==", 24}};
    static uint8_t id[SS_SESSION_ID_LEN] = {1, 2, 3};
    struct ss_profile *one = client_of(method, NULL, CHAIN);
    struct ss_profile *two =
        client_of(method, NULL, "AAECAwQFBgcICQoLDA0ODw==:ICEiIyQlJicoKSorLC0uLw==");
    struct ss_key_fault fault;
    struct ss_profile *server;
    struct ss_packet_session *session;
    struct ss_packet_link *link;
    struct pair first, second;
    size_t len;

    (void)state;
    assert_int_equal(ss_users_new(&options.users, method, list, 2, &fault), SS_OK);
    assert_int_equal(ss_profile_new(&server, &options), SS_OK);
    ss_users_release(options.users);
    first = pair_of(one, server, 8);
    second = first;
    second.client = packet_codec(two, SS_CODEC_CLIENT, NULL);
    free_link(first.link);
    draw_next(id, sizeof id);
    first.link = link_of(first.client, NULL);
    draw_next(id, sizeof id);
    second.link = link_of(second.client, NULL);

    len = ask(&first, 10, wire);
    assert_int_equal(serve(&first, wire, len, NOW, &session), SS_OK);
    assert_string_equal(session->user->name, "one");
    (void)ask(&second, 10, wire);
    len = ask(&second, 10, wire);
    assert_int_equal(serve(&second, wire, len, NOW, NULL), SS_ERR_AUTH);
    link = link_of(first.server, session);
    assert_int_equal(serve(&second, wire, len, NOW, NULL), SS_ERR_AUTH);
    len = answer(&first, link, 10, wire);
    assert_int_equal(take(&second, wire, len, NOW), SS_ERR_AUTH);
    assert_int_equal(take(&first, wire, len, NOW), SS_OK);
    free_link(link);
    free_link(second.link);
    free_packet_codec_2022(second.client);
    free_pair(&first);
    ss_profile_release(one);
    ss_profile_release(two);
    ss_profile_release(server);
}

/* A user who goes takes his sessions along at once; another's go on. */
static void a_list_of_users_takes_the_place_of_another(void **state)
{
    static const struct ss_endpoint next = {.host = "192.0.2.1", .port = 7};
    const struct ss_method *method = any_method();
    struct ss_user_options list[] = {
        {.name = "renamed", .password = {(const uint8_t *)"EBESExQVFhcYGRobHB0eHw==", 24}},
        {.name = "passed on",
         .password = {(const uint8_t *)"EBESExQVFhcYGRobHB0eHw==", 24},
         .next = &next},
    };
    struct ss_profile *client = client_of(method, NULL, CHAIN);
    struct ss_profile *server = server_of(method, NULL, IPSK_HEX, UPSK_HEX, NULL);

    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* kept, gone, passed on from now on */
        struct pair pair = pair_of(client, server, 8);
        struct ss_packet_session *session;
        struct ss_packet_link *link;
        struct ss_key_fault fault;
        struct ss_users *users, *back;
        struct ss_packet_payload from = {{payload, 5}, 0, 0, NULL};
        size_t len = ask(&pair, 5, wire), sealed_len;

        assert_int_equal(ss_users_new(&back, method, list, 1, &fault), SS_OK);
        ss_profile_set_users(server, back);
        assert_int_equal(serve(&pair, wire, len, NOW, &session), SS_OK);
        from.link = link = link_of(pair.server, session);
        assert_int_equal(
            ss_users_new(&users, method, kind == 2 ? list + 1 : list, kind != 1, &fault), SS_OK);
        ss_profile_set_users(server, users);
        len = ask(&pair, 5, wire);
        if (kind == 0) {
            assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_OK);
            assert_ptr_equal(session->user, ss_users_get(users, 0));
            len = answer(&pair, link, 5, wire);
            assert_int_equal(take(&pair, wire, len, NOW), SS_OK);
        } else {
            assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_ERR_AUTH);
            assert_int_equal(ss_packet_seal(pair.server, packet_address("192.0.2.1", 1), &from, NOW,
                                            (struct ss_span){wire, sizeof wire}, &sealed_len),
                             SS_ERR_NOT_FOUND);
            /* Nor does the session come back with him. */
            ss_profile_set_users(server, back);
            len = ask(&pair, 5, wire);
            assert_int_equal(serve(&pair, wire, len, NOW, NULL), SS_ERR_AUTH);
        }
        ss_users_release(users);
        ss_users_release(back);
        free_link(link);
        free_pair(&pair);
    }
    ss_profile_release(client);
    ss_profile_release(server);
}

/* Of name look-ups, where there is room, and never beyond what any path takes. */
/* A relay can't read time stamps: what was recorded makes no session when its own is forgotten, but
 * that one may go on. */
static void a_relay_passes_a_packet_on_once(void **state)
{
    static const struct ss_endpoint next = {.host = "192.0.2.1", .port = 7};
    const struct ss_user_options user = {
        .name = "next", .password = {(const uint8_t *)"EBESExQVFhcYGRobHB0eHw", 22}, .next = &next};
    struct ss_key_fault fault;
    struct ss_profile_options options = {
        .method = any_method(),
        .password = {(const uint8_t *)"AAECAwQFBgcICQoLDA0ODw", 22},
        .packet_salts = ss_salt_memory_new(100)};
    struct ss_profile *client = client_of(any_method(), NULL, CHAIN), *middle;
    struct ss_packet_opened opened;
    struct ss_packet_link *other_link;
    struct pair pair;
    size_t len, len2;

    (void)state;
    assert_int_equal(ss_users_new(&options.users, any_method(), &user, 1, &fault), SS_OK);
    assert_int_equal(ss_profile_new(&middle, &options), SS_OK);
    ss_users_release(options.users);
    pair = pair_of(client, middle, 4);
    other_link = link_of(pair.client, NULL);
    len = ask(&pair, 5, wire);
    assert_int_equal(open_copy_2022(pair.server, NULL, wire, len, NOW, &opened, plain), SS_OK);
    assert_int_equal(open_copy_2022(pair.server, NULL, wire, len, NOW, &opened, plain),
                     SS_ERR_REPLAY);
    len2 = seal_exactly(pair.client, other_link, packet_address("host.example", 443), payload, 5,
                        NOW + 100, other);
    assert_int_equal(open_copy_2022(pair.server, NULL, other, len2, NOW + 100, &opened, plain),
                     SS_OK);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 1);
    assert_int_equal(open_copy_2022(pair.server, NULL, wire, len, NOW + 100, &opened, plain),
                     SS_ERR_REPLAY);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 1);
    len = ask(&pair, 5, wire);
    assert_int_equal(open_copy_2022(pair.server, NULL, wire, len, NOW + 100, &opened, plain),
                     SS_OK);
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 2);
    free_link(other_link);
    free_pair(&pair);
    ss_profile_release(client);
    ss_profile_release(middle);
    ss_salt_memory_free(options.packet_salts);
}

static void check_padding(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    struct ss_view address = packet_address("192.0.2.53", 53);
    size_t head_len = ss_packet_head_len(pair.client, address.len);
    size_t lowest = SIZE_MAX, highest = 0;

    for (int i = 0; i < 3000; i++) {
        size_t len = (size_t)i % 1400;
        const struct ss_packet_payload from = {{room + 2000, len}, 2000, 16, pair.link};
        size_t least = head_len + len + SS_PACKET_TAIL;
        struct ss_packet_opened opened;
        struct ss_view sealed;

        assert_int_equal(ss_packet_seal_in_place(pair.client, address, &from, NOW, &sealed), SS_OK);
        assert_true(sealed.len >= least && sealed.len <= least + 900);
        assert_true(sealed.len <= (least > 1232 ? least : 1232));
        if (sealed.len - least < lowest)
            lowest = sealed.len - least;
        if (sealed.len - least > highest)
            highest = sealed.len - least;
        assert_int_equal(
            open_copy_2022(pair.server, NULL, sealed.ptr, sealed.len, NOW, &opened, plain), SS_OK);
        assert_int_equal(opened.payload.len, len);
    }
    assert_true(lowest == 0 && highest > 850);
    for (int i = 0; i < 100; i++) {
        const struct ss_packet_payload from = {{room + 2000, 20}, 2000, 16, pair.link};
        struct ss_view sealed;

        assert_int_equal(ss_packet_seal_in_place(pair.client, packet_address("192.0.2.53", 54),
                                                 &from, NOW, &sealed),
                         SS_OK);
        assert_int_equal(sealed.len, head_len + 20 + SS_PACKET_TAIL);
    }
    free_pair(&pair);
    ss_profile_release(profile);
}

static void name_look_ups_are_padded(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_padding);
}

/* As a batch comes with GRO and leaves with GSO: payloads one behind the other without a gap. */
static void check_batch(const struct ss_method *method, const struct ss_aead *aead)
{
    enum { COUNT = 20, LEN = 1382 };
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    struct ss_view address = packet_address("2001:db8::7", 443);
    size_t at = 0;

    fill_pattern(payload, sizeof payload);
    memcpy(room + 64, payload, (size_t)COUNT * LEN);
    for (size_t i = 0; i < COUNT; i++) {
        struct ss_packet_payload from = {{room + 64 + i * LEN, LEN}, 64 + i * LEN, 0, pair.link};
        size_t len;

        assert_int_equal(ss_packet_seal(pair.client, address, &from, NOW,
                                        (struct ss_span){wire + at, sizeof wire - at}, &len),
                         SS_OK);
        at += len;
    }
    for (size_t i = 0; i < COUNT; i++) {
        struct ss_packet_opened opened;

        assert_int_equal(open_copy_2022(pair.server, NULL, wire + i * (at / COUNT), at / COUNT, NOW,
                                        &opened, plain),
                         SS_OK);
        assert_int_equal(opened.payload.len, LEN);
        assert_memory_equal(plain, payload + i * LEN, LEN);
    }
    free_pair(&pair);
    ss_profile_release(profile);
}

static void a_batch_is_sealed_from_one_buffer_into_another(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_batch);
}

/* Associations one after the other in the same slots, and datagrams both ways. */
static unsigned long run_associations(const struct pair *pair, struct ss_packet_link *asking,
                                      struct ss_packet_link *answering, int count)
{
    struct ss_view address = packet_address("192.0.2.9", 443);
    const struct ss_packet_payload request = {{room + 500, 1382}, 500, 16, asking};
    const struct ss_packet_payload reply = {{room + 500, 1382}, 500, 16, answering};
    struct ss_packet_opened opened;
    struct ss_view sealed;
    unsigned long before = allocation_count();
    int failed = 0;

    for (int i = 0; i < count; i++) {
        failed |= ss_packet_link_begin(asking, pair->client, NULL) != SS_OK;
        for (int k = 0; k < 3; k++) {
            failed |= ss_packet_seal_in_place(pair->client, address, &request, NOW + 100 * i,
                                              &sealed) != SS_OK;
            memcpy(wire, sealed.ptr, sealed.len);
            failed |= ss_packet_open(pair->server, (struct ss_span){wire, sealed.len},
                                     NOW + 100 * i, &opened) != SS_OK;
            if (k == 0)
                failed |= ss_packet_link_begin(answering, pair->server, opened.session) != SS_OK;
            failed |= ss_packet_seal_in_place(pair->server, address, &reply, NOW + 100 * i,
                                              &sealed) != SS_OK;
            memcpy(wire, sealed.ptr, sealed.len);
            failed |= ss_packet_open_reply(pair->client, asking, (struct ss_span){wire, sealed.len},
                                           NOW + 100 * i, &opened) != SS_OK;
        }
        ss_packet_link_end(asking);
        ss_packet_link_end(answering);
    }
    before = allocation_count() - before;
    assert_int_equal(failed, 0);
    return before;
}

static void check_allocations(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    struct pair pair = pair_of(profile, profile, 4);
    struct ss_packet_link *asking = link_of(pair.client, NULL), *answering = NULL;
    size_t size = ss_packet_link_size(profile);
    bool may_allocate = aead->provider == SS_AEAD_MBEDTLS && aead->algorithm <= SS_AEAD_AES_256_GCM;
    unsigned long allocated;

    assert_true(size > 0 && size <= 4096 && size % 64 == 0);
    ss_packet_link_end(asking);
    answering = aligned_alloc(64, 4096);
    memset(answering, 0, 4096);
    run_associations(&pair, asking, answering, 1);
    allocated = run_associations(&pair, asking, answering, 30);
    if (!may_allocate)
        assert_int_equal(allocated, 0);
    free_link(asking);
    free_link(answering);
    free_pair(&pair);
    ss_profile_release(profile);
}

static void associations_are_not_allocated_for(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_allocations);
}

static void the_table_takes_as_many_as_it_says(void **state)
{
    enum { COUNT = 4096 };
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct pair pair = pair_of(profile, profile, COUNT);
    uint8_t(*packets)[100] = calloc(COUNT, sizeof *packets);
    size_t len = 0;

    (void)state;
    assert_true(sizeof(struct ss_packet_session) <= 256);
    for (size_t i = 0; i < COUNT; i++) {
        ss_packet_link_end(pair.link);
        assert_int_equal(ss_packet_link_begin(pair.link, pair.client, NULL), SS_OK);
        len = ask(&pair, 1, packets[i]);
        assert_int_equal(serve(&pair, packets[i], len, NOW, NULL), SS_OK);
    }
    assert_int_equal(ss_packet_sessions_count(pair.sessions), COUNT);
    ss_packet_link_end(pair.link);
    assert_int_equal(ss_packet_link_begin(pair.link, pair.client, NULL), SS_OK);
    len = ask(&pair, 1, wire);
    assert_int_equal(serve(&pair, wire, len, NOW + 30, NULL), SS_ERR_LIMIT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(serve(&pair, packets[i], len, NOW + 30, NULL), SS_ERR_REPLAY);
    /* They go one by one when their time is over and another needs the room. */
    for (int64_t i = 0; i < 600; i++) {
        struct ss_view address = packet_address("host.example", 443);

        ss_packet_link_end(pair.link);
        assert_int_equal(ss_packet_link_begin(pair.link, pair.client, NULL), SS_OK);
        len = seal_exactly(pair.client, pair.link, address, payload, 1, NOW + 61 + i, wire);
        assert_int_equal(serve(&pair, wire, len, NOW + 61 + i, NULL), SS_OK);
    }
    assert_int_equal(ss_packet_sessions_count(pair.sessions), 61);
    (void)ss_packet_sessions_trim(pair.sessions);
    free(packets);
    free_pair(&pair);
    ss_profile_release(profile);
}

/* What others do not know: the 2017 methods have no links. */
static void other_methods_have_no_sessions(void **state)
{
    struct ss_profile *profile = profile_of(ss_method_find("aes-256-gcm"), NULL, NULL);

    (void)state;
    assert_int_equal(ss_packet_link_size(profile), 0);
    ss_profile_release(profile);
}

int packet_2022_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_or_a_cut_is_refused),
        cmocka_unit_test(nothing_is_taken_back_by_who_sent_it),
        cmocka_unit_test(packets_come_once_in_any_order),
        cmocka_unit_test(a_session_stays_for_a_minute),
        cmocka_unit_test(a_clock_that_is_set_back_repeats_no_session),
        cmocka_unit_test(an_association_may_come_back),
        cmocka_unit_test(a_server_may_start_again),
        cmocka_unit_test(a_forgotten_server_is_not_heard_again),
        cmocka_unit_test(ports_and_associations_are_apart),
        cmocka_unit_test(what_is_missing_is_an_argument_error),
        cmocka_unit_test(a_session_keeps_its_user),
        cmocka_unit_test(a_list_of_users_takes_the_place_of_another),
        cmocka_unit_test(a_relay_passes_a_packet_on_once),
        cmocka_unit_test(name_look_ups_are_padded),
        cmocka_unit_test(a_batch_is_sealed_from_one_buffer_into_another),
        cmocka_unit_test(associations_are_not_allocated_for),
        cmocka_unit_test(the_table_takes_as_many_as_it_says),
        cmocka_unit_test(other_methods_have_no_sessions),
    };

    return cmocka_run_group_tests_name("codec/2022 datagrams", tests, NULL, NULL);
}
