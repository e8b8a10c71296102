/* TCP under the 2022 edition: first reads, cuts, refusals, replays, users, chunks that grow. */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "codec/codec_internal.h"
#include "crypto/random.h"
#include "support.h"
#include "vectors/read.h"
#include "vectors_2022.h"

#define PLAIN_MAX (1024 * 1024)
#define WIRE_MAX  (PLAIN_MAX + 100000)
#define NOW       VECTORS_NOW

#define CHAIN    "AAECAwQFBgcICQoLDA0ODw==:EBESExQVFhcYGRobHB0eHw=="
#define IPSK_HEX "000102030405060708090a0b0c0d0e0f"
#define UPSK_HEX "101112131415161718191a1b1c1d1e1f"

static uint8_t plain[PLAIN_MAX], wire[WIRE_MAX];

static struct reader reader_of(const struct ss_profile *profile, enum ss_codec_role role)
{
    struct reader reader = {
        .codec = codec_of(profile, role), .plain = malloc(PLAIN_MAX), .plain_cap = PLAIN_MAX};

    assert_non_null(reader.plain);
    return reader;
}

static const struct ss_method *any_method(void)
{
    return ss_method_find("2022-blake3-aes-128-gcm");
}

/* A client's request in `wire`; the sender stays for the response. */
static size_t make_request(struct ss_codec *sender, const size_t *sizes, size_t count)
{
    struct ss_target target = target_of("host.example", 443);
    size_t len = 0, at = 0;

    fill_pattern(plain, PLAIN_MAX);
    ss_codec_set_target(sender, &target);
    for (size_t i = 0; i < count; i++) {
        len += seal_all_at(sender, plain + at, sizes[i], wire + len, sizeof wire - len, NOW);
        at += sizes[i];
    }
    return len;
}

static void check_opened(const struct reader *reader, size_t plain_len)
{
    const struct ss_target *target = ss_codec_target(reader->codec);

    assert_non_null(target);
    assert_string_equal(target->name, "host.example");
    assert_int_equal(target->port, 443);
    assert_int_equal(reader->plain_len, plain_len);
    assert_memory_equal(reader->plain, plain, plain_len);
    assert_int_equal(reader->rest_len, 0);
    assert_true(ss_codec_may_end(reader->codec, 0));
}

static const size_t sizes[] = {3, 1, 700, 2};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])
#define SIZE_SUM   (3 + 1 + 700 + 2)

/* What the first read must hold. */
static size_t first_len(const struct ss_method *method, bool has_identity)
{
    return method->salt_len + (has_identity ? 16 : 0) + 11 + 16;
}

/* Cut in two anywhere: refused at once before the first header is whole, and fine behind it. */
static void check_every_cut(const struct ss_profile *client, const struct ss_profile *server,
                            bool has_identity)
{
    const struct ss_method *method = ss_profile_method(client);
    struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
    size_t len = make_request(sender, sizes, SIZE_COUNT);
    size_t least = first_len(method, has_identity);

    for (size_t cut = 1; cut <= len; cut++) {
        struct reader reader = reader_of(server, SS_CODEC_SERVER);

        if (cut < least) {
            assert_int_equal(feed_at(&reader, wire, cut, NOW), SS_ERR_AUTH);
            assert_int_equal(feed_at(&reader, wire + cut, len - cut, NOW), SS_ERR_AUTH);
            assert_false(reader.codec->authenticated);
            assert_null(ss_codec_user(reader.codec));
        } else {
            assert_int_equal(feed_at(&reader, NULL, 0, NOW), SS_OK); /* is no read */
            assert_int_equal(feed_at(&reader, wire, cut, NOW), SS_OK);
            assert_true(reader.codec->authenticated);
            assert_int_equal(feed_at(&reader, wire + cut, len - cut, NOW), SS_OK);
            check_opened(&reader, SIZE_SUM);
        }
        free_reader(&reader);
    }
    free_codec(sender);
}

static void check_cuts(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);

    check_every_cut(profile, profile, false);
    ss_profile_release(profile);
}

static void the_first_read_holds_the_first_header(void **state)
{
    struct ss_profile *client = client_of(any_method(), NULL, CHAIN);
    struct ss_profile *server = server_of(any_method(), NULL, IPSK_HEX, UPSK_HEX, NULL);

    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_cuts);
    check_every_cut(client, server, true);
    ss_profile_release(client);
    ss_profile_release(server);
}

/* Behind a plugin, which may cut anywhere. Both directions. */
static void check_byte_by_byte(const struct ss_method *method, const struct ss_aead *aead)
{
    static const uint8_t key[SS_KEY_MAX] = {5};
    const struct ss_profile_options options = {.method = method,
                                               .aead = aead,
                                               .key = {key, method->key_len},
                                               .first_read_may_be_short = true};
    struct ss_profile *profile;
    struct reader client, server;
    size_t len;

    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    client = reader_of(profile, SS_CODEC_CLIENT);
    server = reader_of(profile, SS_CODEC_SERVER);
    len = make_request(client.codec, sizes, SIZE_COUNT);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(feed_at(&server, wire + i, 1, NOW), SS_OK);
    check_opened(&server, SIZE_SUM);

    len = seal_all_at(server.codec, plain, 20000, wire, sizeof wire, NOW);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(feed_at(&client, wire + i, 1, NOW), SS_OK);
        if (i + 1 < len)
            assert_true(client.rest_len == 0 || !ss_codec_may_end(client.codec, client.rest_len));
    }
    assert_int_equal(client.plain_len, 20000);
    assert_memory_equal(client.plain, plain, 20000);
    free_reader(&client);
    free_reader(&server);
    ss_profile_release(profile);
}

static void behind_a_plugin_a_stream_opens_byte_by_byte(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_byte_by_byte);
}

/* A client, too, takes the first header of the response from one read alone. */
static void check_response_cuts(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);
    size_t least = 2 * method->salt_len + 11 + 16;

    for (size_t cut = 1; cut < least + 300; cut += cut < least + 40 ? 1 : 13) {
        struct reader client = reader_of(profile, SS_CODEC_CLIENT);
        struct reader server = reader_of(profile, SS_CODEC_SERVER);
        size_t len = make_request(client.codec, sizes, 1);

        assert_int_equal(feed_at(&server, wire, len, NOW), SS_OK);
        assert_true(ss_codec_may_end(client.codec, 0)); /* a server may have nothing to say */
        assert_int_equal(seal_all_at(server.codec, plain, 0, wire, sizeof wire, NOW), 0);
        len = seal_all_at(server.codec, plain, 300, wire, sizeof wire, NOW);
        if (cut < least) {
            assert_int_equal(feed_at(&client, wire, cut, NOW), SS_ERR_AUTH);
            assert_int_equal(feed_at(&client, wire + cut, len - cut, NOW), SS_ERR_AUTH);
        } else {
            assert_int_equal(feed_at(&client, wire, cut, NOW), SS_OK);
            assert_int_equal(feed_at(&client, wire + cut, len - cut, NOW), SS_OK);
            assert_int_equal(client.plain_len, 300);
            assert_memory_equal(client.plain, plain, 300);
        }
        free_reader(&client);
        free_reader(&server);
    }
    ss_profile_release(profile);
}

static void the_first_read_of_a_response_holds_its_header(void **state)
{
    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_response_cuts);
}

/* Every bit of what comes before the first chunk, and of that, in a request and its response. */
static void check_flips(const struct ss_profile *client, const struct ss_profile *server)
{
    static uint8_t good[2000], flipped[2000];
    uint8_t salt[SS_SALT_MAX];
    struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
    struct reader answerer = reader_of(server, SS_CODEC_SERVER);
    size_t len = make_request(sender, sizes, 2);

    assert_true(len <= sizeof good);
    memcpy(good, wire, len);
    memcpy(salt, wire, sizeof salt);
    for (size_t bit = 0; bit < len * 8; bit++) {
        struct reader reader = reader_of(server, SS_CODEC_SERVER);

        memcpy(flipped, good, len);
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(feed_at(&reader, flipped, len, NOW), SS_ERR_AUTH);
        assert_int_equal(feed_at(&reader, good, len, NOW), SS_ERR_AUTH);
        assert_int_equal(reader.plain_len, 0);
        free_reader(&reader);
    }

    assert_int_equal(feed_at(&answerer, good, len, NOW), SS_OK);
    len = seal_all_at(answerer.codec, plain, 10, good, sizeof good, NOW);
    for (size_t bit = 0; bit < len * 8; bit++) {
        struct reader asker = reader_of(client, SS_CODEC_CLIENT);
        struct ss_target target = target_of("host.example", 443);

        draw_next(salt, ss_profile_method(client)->salt_len);
        ss_codec_set_target(asker.codec, &target);
        (void)seal_all_at(asker.codec, plain, 3, wire, sizeof wire, NOW);
        memcpy(flipped, good, len);
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(feed_at(&asker, flipped, len, NOW), SS_ERR_AUTH);
        assert_int_equal(asker.plain_len, 0);
        free_reader(&asker);
    }
    free_reader(&answerer);
    free_codec(sender);
}

static void check_flipped_bits(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_profile *profile = profile_of(method, aead, NULL);

    check_flips(profile, profile);
    ss_profile_release(profile);
}

static void a_flipped_bit_is_refused(void **state)
{
    struct ss_profile *client = client_of(any_method(), NULL, CHAIN);
    struct ss_profile *server = server_of(any_method(), NULL, IPSK_HEX, UPSK_HEX, NULL);

    (void)state;
    for_each_provider_of(SS_METHODS_2022, check_flipped_bits);
    check_flips(client, server);
    ss_profile_release(client);
    ss_profile_release(server);
}

static void an_answer_to_another_request_is_refused(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct reader server = reader_of(profile, SS_CODEC_SERVER);
    struct reader early = reader_of(profile, SS_CODEC_CLIENT);
    struct reader client = reader_of(profile, SS_CODEC_CLIENT);
    struct reader other = reader_of(profile, SS_CODEC_CLIENT);
    struct reader reflected = reader_of(profile, SS_CODEC_CLIENT);
    size_t len = make_request(other.codec, sizes, 1);

    (void)state;
    assert_int_equal(feed_at(&server, wire, len, NOW), SS_OK);
    len = make_request(reflected.codec, sizes, 3);
    assert_int_equal(feed_at(&reflected, wire, len, NOW), SS_ERR_AUTH); /* its own bytes */
    (void)make_request(client.codec, sizes, 1);
    len = seal_all_at(server.codec, plain, 5, wire, sizeof wire, NOW);
    assert_int_equal(feed_at(&client, wire, len, NOW), SS_ERR_REPLAY);
    assert_false(client.codec->authenticated);
    assert_int_equal(feed_at(&early, wire, len, NOW), SS_ERR_FORMAT); /* none was asked */
    /* A response is no request. */
    len = seal_all_at(server.codec, plain, 5, wire, sizeof wire, NOW);
    free_reader(&early);
    early = reader_of(profile, SS_CODEC_SERVER);
    assert_int_equal(feed_at(&early, wire, len, NOW), SS_ERR_AUTH);
    free_reader(&server);
    free_reader(&early);
    free_reader(&client);
    free_reader(&other);
    free_reader(&reflected);
    ss_profile_release(profile);
}

static struct ss_profile *with_pool(struct ss_salt_pool *pool)
{
    static const uint8_t key[16] = {'k', 'e', 'y'};
    const struct ss_profile_options options = {
        .method = any_method(), .key = {key, sizeof key}, .salt_pool = pool};
    struct ss_profile *profile;

    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    return profile;
}

static enum ss_status open_once(const struct ss_profile *server, const uint8_t *bytes, size_t len,
                                int64_t now_s, int64_t *difference)
{
    struct reader reader = reader_of(server, SS_CODEC_SERVER);
    enum ss_status status = feed_at(&reader, bytes, len, now_s);

    *difference = ss_codec_clock_difference(reader.codec);
    assert_int_equal(status == SS_OK, ss_codec_target(reader.codec) != NULL);
    free_reader(&reader);
    return status;
}

/* What did not open, or had a wrong time, leaves no salt; what did is refused as long as its stamp
 * is good, and for its stamp from then on. */
static void a_request_is_taken_once(void **state)
{
    struct ss_salt_pool *pool = ss_salt_pool_new(3);
    struct ss_profile *client = profile_of(any_method(), NULL, NULL);
    struct ss_profile *server = with_pool(pool);
    struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
    size_t len = make_request(sender, sizes, SIZE_COUNT);
    int64_t difference;

    (void)state;
    wire[20] ^= 1;
    assert_int_equal(open_once(server, wire, len, NOW, &difference), SS_ERR_AUTH);
    wire[20] ^= 1;
    assert_int_equal(open_once(server, wire, len, NOW + 31, &difference), SS_ERR_STALE);
    assert_int_equal(difference, -31);
    assert_int_equal(open_once(server, wire, len, NOW - 3600, &difference), SS_ERR_STALE);
    assert_int_equal(difference, 3600);
    assert_int_equal(ss_salt_pool_count(pool), 0);
    assert_int_equal(open_once(server, wire, len, NOW - 30, &difference), SS_OK);
    for (int64_t now_s = NOW - 30; now_s <= NOW + 30; now_s++)
        assert_int_equal(open_once(server, wire, len, now_s, &difference), SS_ERR_REPLAY);
    assert_int_equal(open_once(server, wire, len, NOW + 31, &difference), SS_ERR_STALE);
    assert_int_equal(ss_salt_pool_count(pool), 1);
    free_codec(sender);

    /* A full pool lets nobody in, also not who has just been. */
    for (int i = 0; i < 4; i++) {
        sender = codec_of(client, SS_CODEC_CLIENT);
        len = make_request(sender, sizes, 1);
        assert_int_equal(open_once(server, wire, len, NOW, &difference),
                         i < 2 ? SS_OK : SS_ERR_LIMIT);
        free_codec(sender);
    }
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_pool_free(pool);
}

/* The first chunks are of 16 KiB; they double while a call brings more than one, until a write is
 * short. None is ever a few bytes long. */
static void chunks_grow_while_writes_are_whole(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct reader server = reader_of(profile, SS_CODEC_SERVER);
    struct reader client = reader_of(profile, SS_CODEC_CLIENT);
    static const struct {
        size_t len, chunks;
        bool short_write;
    } writes[] = {
        {16384, 1, false},  {16385, 2, false},  {100000, 4, false},  {262144, 5, false},
        {262144, 5, false}, {65535, 1, true},   {65536, 4, false},   {16384, 1, false},
        {65536, 2, true},   {262144, 16, true}, {262144, 16, false}, {262144, 8, false},
        {262144, 5, false},
    };
    size_t len = make_request(client.codec, sizes, 1), sum = 0;

    (void)state;
    assert_int_equal(feed_at(&server, wire, len, NOW), SS_OK);
    client.plain_cap = PLAIN_MAX;
    assert_int_equal(
        feed_at(&client, wire, seal_all_at(server.codec, plain, 1, wire, sizeof wire, NOW), NOW),
        SS_OK);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        client.plain_len = 0;
        len = seal_all_at(server.codec, plain, writes[i].len, wire, sizeof wire, NOW);
        assert_int_equal(len, writes[i].len + writes[i].chunks * 34);
        assert_int_equal(feed_at(&client, wire, len, NOW), SS_OK);
        assert_int_equal(client.plain_len, writes[i].len);
        assert_memory_equal(client.plain, plain, writes[i].len);
        sum += len;
        if (writes[i].short_write)
            ss_codec_write_was_short(server.codec);
    }
    assert_true(sum > 1000000);
    free_reader(&server);
    free_reader(&client);
    ss_profile_release(profile);
}

/* Whatever the room, what is written is whole chunks, the first of them with all that belongs in
 * front, and nothing is lost or sent twice. */
static void sealing_fits_any_room(void **state)
{
    struct ss_profile *client = client_of(any_method(), NULL, CHAIN);
    struct ss_profile *server = server_of(any_method(), NULL, IPSK_HEX, UPSK_HEX, NULL);

    (void)state;
    fill_pattern(plain, PLAIN_MAX);
    for (size_t room = 0; room < 40000; room += room < 200 ? 1 : 1973)
        for (size_t plain_len = 0; plain_len <= 20000; plain_len += 20000) {
            struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
            struct reader reader = reader_of(server, SS_CODEC_SERVER);
            struct ss_view from = {plain, plain_len};
            struct ss_span to = {wire, room};
            struct ss_target target = target_of("host.example", 443);
            size_t least = 16 + 16 + 27 + 16 + 2 + 14 + 2 + 1;
            enum ss_status status = SS_NEED_ROOM;

            ss_codec_set_target(sender, &target);
            if (room < least) {
                assert_int_equal(ss_codec_seal(sender, &from, &to, NOW), SS_NEED_ROOM);
                assert_ptr_equal(to.ptr, wire);
                assert_int_equal(from.len, plain_len);
            }
            for (int call = 0; room >= least && status == SS_NEED_ROOM && call < 100; call++) {
                to = (struct ss_span){wire, room};
                status = ss_codec_seal(sender, &from, &to, NOW);
                assert_true(to.ptr > wire);
                assert_int_equal((size_t)(to.ptr - wire) + to.len, room);
                assert_int_equal(feed_at(&reader, wire, (size_t)(to.ptr - wire), NOW), SS_OK);
                assert_int_equal(reader.rest_len, 0);
                assert_non_null(ss_codec_target(reader.codec));
                assert_int_equal(reader.plain_len, plain_len - from.len);
                assert_memory_equal(reader.plain, plain, reader.plain_len);
            }
            free_reader(&reader);
            free_codec(sender);
        }
    ss_profile_release(client);
    ss_profile_release(server);
}

/* Without payload there are 1 to 900 bytes of padding, of any length in between. */
static void a_request_without_payload_is_padded(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    const size_t least = 16 + 27 + 2 + 14 + 2 + 16;
    size_t lowest = SIZE_MAX, highest = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct ss_codec *sender = codec_of(profile, SS_CODEC_CLIENT);
        size_t len = make_request(sender, (const size_t[]){0}, 1);

        assert_true(len > least && len <= least + 900);
        if (len < lowest)
            lowest = len;
        if (len > highest)
            highest = len;
        if (i < 20) {
            struct reader reader = reader_of(profile, SS_CODEC_SERVER);

            assert_int_equal(feed_at(&reader, wire, len, NOW), SS_OK);
            check_opened(&reader, 0);
            free_reader(&reader);
        }
        free_codec(sender);
    }
    assert_true(lowest <= least + 10 && highest >= least + 890);
    ss_profile_release(profile);
}

static void a_server_answers_nothing_before_a_request(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);
    struct ss_codec *server = codec_of(profile, SS_CODEC_SERVER);
    struct ss_view from = {plain, 10};
    struct ss_span to = {wire, sizeof wire};

    (void)state;
    assert_int_equal(ss_codec_seal(server, &from, &to, NOW), SS_ERR_ARGUMENT);
    assert_ptr_equal(to.ptr, wire);
    free_codec(server);
    ss_profile_release(profile);
}

#define USER_COUNT 20000

/* Tens of thousands, each found, answered with his own key, and told by name. */
static void users_are_told_apart(void **state)
{
    const struct ss_method *method = any_method();
    struct ss_user_options *list = calloc(USER_COUNT, sizeof *list);
    char(*names)[16] = calloc(USER_COUNT, sizeof *names);
    char(*keys)[25] = calloc(USER_COUNT, sizeof *keys);
    int tags[3];
    struct ss_key_fault fault;
    struct ss_profile_options options = {
        .method = method,
        .password = {(const uint8_t *)"AAECAwQFBgcICQoLDA0ODw==", 24},
    };
    struct ss_profile *server;

    (void)state;
    for (size_t i = 0; i < USER_COUNT; i++) {
        uint8_t key[16];

        ss_random_bytes(key, sizeof key);
        ss_base64_encode(keys[i], key, sizeof key, SS_BASE64_STANDARD);
        snprintf(names[i], sizeof names[i], "user%zu", i);
        list[i] = (struct ss_user_options){
            .name = names[i], .password = {(uint8_t *)keys[i], 24}, .tag = &tags[i % 3]};
    }
    assert_int_equal(ss_users_new(&options.users, method, list, USER_COUNT, &fault), SS_OK);
    assert_int_equal(ss_profile_new(&server, &options), SS_OK);
    for (size_t i = 0; i < USER_COUNT; i += 997) {
        char chain[64];
        struct ss_profile *client;
        struct reader asker, answerer;
        const struct ss_user *user;
        size_t len;

        snprintf(chain, sizeof chain, "AAECAwQFBgcICQoLDA0ODw==:%s", keys[i]);
        client = client_of(method, NULL, chain);
        asker = reader_of(client, SS_CODEC_CLIENT);
        answerer = reader_of(server, SS_CODEC_SERVER);
        len = make_request(asker.codec, sizes, SIZE_COUNT);
        assert_int_equal(feed_at(&answerer, wire, len, NOW), SS_OK);
        check_opened(&answerer, SIZE_SUM);
        user = ss_codec_user(answerer.codec);
        assert_non_null(user);
        assert_string_equal(user->name, names[i]);
        assert_ptr_equal(user->tag, &tags[i % 3]);
        assert_null(user->next);
        len = seal_all_at(answerer.codec, plain, 5000, wire, sizeof wire, NOW);
        assert_int_equal(feed_at(&asker, wire, len, NOW), SS_OK);
        assert_int_equal(asker.plain_len, 5000);
        free_reader(&asker);
        free_reader(&answerer);
        ss_profile_release(client);
    }
    ss_profile_release(server);
    assert_int_equal(ss_users_count(options.users), USER_COUNT);
    ss_users_release(options.users);
    free(list);
    free(names);
    free(keys);
}

/* Sessions keep the user they began with; new ones meet the new list. */
static void a_list_of_users_takes_the_place_of_another(void **state)
{
    const struct ss_method *method = any_method();
    struct ss_user_options list[] = {
        {.name = "kept", .password = {(const uint8_t *)"EBESExQVFhcYGRobHB0eHw==", 24}},
        {.name = "new", .password = {(const uint8_t *)"ICEiIyQlJicoKSorLC0uLw==", 24}},
    };
    struct ss_profile *client = client_of(method, NULL, CHAIN);
    struct ss_profile *server = server_of(method, NULL, IPSK_HEX, UPSK_HEX, NULL);
    struct reader session = reader_of(server, SS_CODEC_SERVER);
    struct reader asker = reader_of(client, SS_CODEC_CLIENT);
    struct reader late = reader_of(server, SS_CODEC_SERVER);
    struct ss_codec *again = codec_of(client, SS_CODEC_CLIENT);
    struct ss_key_fault fault;
    struct ss_users *with, *without;
    size_t len = make_request(asker.codec, sizes, 1);

    (void)state;
    assert_int_equal(ss_users_new(&with, method, list, 2, &fault), SS_OK);
    assert_int_equal(ss_users_new(&without, method, list + 1, 1, &fault), SS_OK);
    assert_int_equal(feed_at(&session, wire, len, NOW), SS_OK);
    ss_profile_set_users(server, with);
    assert_string_equal(ss_users_same(with, ss_codec_user(session.codec))->name, "kept");
    ss_profile_set_users(server, without);
    assert_null(ss_users_same(without, ss_codec_user(session.codec)));
    assert_string_equal(ss_codec_user(session.codec)->name, "somebody");
    len = seal_all_at(session.codec, plain, 9, wire, sizeof wire, NOW);
    assert_int_equal(feed_at(&asker, wire, len, NOW), SS_OK);

    len = make_request(again, sizes, 1);
    assert_int_equal(feed_at(&late, wire, len, NOW), SS_ERR_AUTH);
    assert_null(ss_codec_user(late.codec));
    ss_users_release(with);
    ss_users_release(without);
    free_reader(&session);
    free_reader(&asker);
    free_reader(&late);
    free_codec(again);
    ss_profile_release(client);
    ss_profile_release(server);
}

/* With users a request must carry an identity, without them it must not. */
static void identities_are_needed_or_refused(void **state)
{
    struct ss_profile *chain = client_of(any_method(), NULL, CHAIN);
    struct ss_profile *plain_client = client_of(any_method(), NULL, "EBESExQVFhcYGRobHB0eHw==");
    struct ss_profile *users = server_of(any_method(), NULL, IPSK_HEX, UPSK_HEX, NULL);
    struct ss_profile *server = server_of(any_method(), NULL, UPSK_HEX, NULL, NULL);
    const struct {
        struct ss_profile *client, *server;
        enum ss_status status;
    } cases[] = {
        {chain, users, SS_OK},
        {plain_client, server, SS_OK},
        {chain, server, SS_ERR_AUTH},
        {plain_client, users, SS_ERR_AUTH},
    };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct ss_codec *sender = codec_of(cases[i].client, SS_CODEC_CLIENT);
        int64_t difference;
        size_t len = make_request(sender, sizes, SIZE_COUNT);

        assert_int_equal(open_once(cases[i].server, wire, len, NOW, &difference), cases[i].status);
        free_codec(sender);
    }
    ss_profile_release(chain);
    ss_profile_release(plain_client);
    ss_profile_release(users);
    ss_profile_release(server);
}

/* A relay between a client and a server sees nothing; what comes later goes through as it is. */
static void a_relay_passes_both_directions_on(void **state)
{
    static const struct ss_endpoint next = {.host = "192.0.2.7", .port = 1};
    static uint8_t passed[WIRE_MAX];
    struct ss_profile *client = client_of(any_method(), NULL, CHAIN);
    struct ss_profile *middle = server_of(any_method(), NULL, IPSK_HEX, UPSK_HEX, &next);
    struct ss_profile *server = server_of(any_method(), NULL, UPSK_HEX, NULL, NULL);
    struct reader asker = reader_of(client, SS_CODEC_CLIENT);
    struct reader relay = reader_of(middle, SS_CODEC_SERVER);
    struct reader answerer = reader_of(server, SS_CODEC_SERVER);
    size_t len = make_request(asker.codec, sizes, SIZE_COUNT), first = 100;
    struct ss_view from;
    struct ss_span to;

    (void)state;
    assert_int_equal(feed_at(&relay, wire, first, NOW), SS_OK);
    assert_int_equal(ss_codec_user(relay.codec)->next->port, 1);
    assert_int_equal(relay.plain_len, first - 16);
    assert_int_equal(feed_at(&relay, wire + first, len - first, NOW), SS_OK);
    assert_int_equal(relay.plain_len, len - 16);
    assert_true(ss_codec_may_end(relay.codec, 0));
    assert_int_equal(feed_at(&answerer, relay.plain, relay.plain_len, NOW), SS_OK);
    check_opened(&answerer, SIZE_SUM);

    len = seal_all_at(answerer.codec, plain, 30000, wire, sizeof wire, NOW);
    from = (struct ss_view){wire, len};
    to = (struct ss_span){passed, 1000};
    assert_int_equal(ss_codec_seal(relay.codec, &from, &to, NOW), SS_NEED_ROOM);
    to.len = len - 1000;
    assert_int_equal(ss_codec_seal(relay.codec, &from, &to, NOW), SS_OK);
    assert_int_equal(feed_at(&asker, passed, len, NOW), SS_OK);
    assert_int_equal(asker.plain_len, 30000);
    free_reader(&asker);
    free_reader(&relay);
    free_reader(&answerer);
    ss_profile_release(client);
    ss_profile_release(middle);
    ss_profile_release(server);
}

/* A recorded start goes no further than the relay, however much of it there is. */
static void a_relay_takes_a_request_once(void **state)
{
    static const struct ss_endpoint next = {.host = "192.0.2.7", .port = 1};
    const struct ss_method *method = any_method();
    const struct ss_user_options user = {
        .name = "next", .password = {(const uint8_t *)"EBESExQVFhcYGRobHB0eHw", 22}, .next = &next};
    struct ss_key_fault fault;
    struct ss_profile_options options = {
        .method = method,
        .password = {(const uint8_t *)"AAECAwQFBgcICQoLDA0ODw", 22},
        .salts = ss_salt_memory_new(100)};
    struct ss_profile *client = client_of(method, NULL, CHAIN), *middle;

    (void)state;
    assert_int_equal(ss_users_new(&options.users, method, &user, 1, &fault), SS_OK);
    assert_int_equal(ss_profile_new(&middle, &options), SS_OK);
    ss_users_release(options.users);
    for (int i = 0; i < 3; i++) {
        struct ss_codec *sender = codec_of(client, SS_CODEC_CLIENT);
        size_t len = make_request(sender, sizes, SIZE_COUNT);

        /* What does not have the key leaves no salt. */
        for (int spoilt = 1; spoilt >= 0; spoilt--) {
            struct reader relay = reader_of(middle, SS_CODEC_SERVER);

            wire[20] ^= (uint8_t)spoilt;
            assert_int_equal(feed_at(&relay, wire, len, NOW), spoilt ? SS_ERR_AUTH : SS_OK);
            wire[20] ^= (uint8_t)spoilt;
            free_reader(&relay);
        }
        for (size_t cut = len; cut >= 60; cut = cut > 60 + 5000 ? cut - 5000 : cut - 1) {
            struct reader relay = reader_of(middle, SS_CODEC_SERVER);

            assert_int_equal(feed_at(&relay, wire, cut, NOW), SS_ERR_REPLAY);
            assert_null(ss_codec_user(relay.codec));
            assert_int_equal(relay.plain_len, 0);
            free_reader(&relay);
        }
        free_codec(sender);
    }
    ss_profile_release(client);
    ss_profile_release(middle);
    ss_salt_memory_free(options.salts);
}

static void any_cuts_of_any_chunks(void **state)
{
    struct ss_profile *profile = profile_of(any_method(), NULL, NULL);

    (void)state;
    for (int round = 0; round < 10; round++) {
        struct ss_codec *sender = codec_of(profile, SS_CODEC_CLIENT);
        struct reader reader = reader_of(profile, SS_CODEC_SERVER);
        size_t chunks[100], sum = 0, len, at = 0;

        for (size_t i = 0; i < 100; i++)
            sum += chunks[i] = 1 + ss_random_below(i % 10 == 0 ? 90000 : 300);
        len = make_request(sender, chunks, 100);
        while (at < len) {
            size_t take = (at == 0 ? 43 : 1) + ss_random_below(60000);

            if (take > len - at)
                take = len - at;
            assert_int_equal(feed_at(&reader, wire + at, take, NOW), SS_OK);
            at += take;
        }
        check_opened(&reader, sum);
        free_reader(&reader);
        free_codec(sender);
    }
    ss_profile_release(profile);
}

int aead2022_stream_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_read_holds_the_first_header),
        cmocka_unit_test(behind_a_plugin_a_stream_opens_byte_by_byte),
        cmocka_unit_test(the_first_read_of_a_response_holds_its_header),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(an_answer_to_another_request_is_refused),
        cmocka_unit_test(a_request_is_taken_once),
        cmocka_unit_test(chunks_grow_while_writes_are_whole),
        cmocka_unit_test(sealing_fits_any_room),
        cmocka_unit_test(a_request_without_payload_is_padded),
        cmocka_unit_test(a_server_answers_nothing_before_a_request),
        cmocka_unit_test(users_are_told_apart),
        cmocka_unit_test(a_list_of_users_takes_the_place_of_another),
        cmocka_unit_test(identities_are_needed_or_refused),
        cmocka_unit_test(a_relay_passes_both_directions_on),
        cmocka_unit_test(a_relay_takes_a_request_once),
        cmocka_unit_test(any_cuts_of_any_chunks),
    };

    return cmocka_run_group_tests_name("codec/2022 streams", tests, NULL, NULL);
}
