/*
 * TCP under the 2022 edition. A request opens to what was sealed, however it is cut behind its
 * first read; with a bit flipped, or cut in its first read, it does not. And whatever somebody who
 * has the key puts into the headers is taken exactly when it is in their form.
 *
 * The input: method, options, two bytes for draws, then the plain bytes; of a forged request a
 * type, the stamp's distance, two bytes of length, then the second header.
 */
#include "fuzz/codec_fuzz.h"

#include "codec/codec.h"
#include "codec/codec_internal.h"
#include "crypto/kdf.h"

#define OPTION_FORGED 1 /* the headers are the input's */
#define OPTION_USERS  2 /* the server has users; the client may have none of their keys */
#define OPTION_FLIP   4
#define OPTION_CUT    8  /* the first read is short */
#define OPTION_LENGTH 16 /* forged: the length is the input's, not the right one */
#define OPTION_PLUGIN 32 /* the first read may be short */

#define NOW       1700000000
#define PLAIN_MAX 80000
#define WIRE_MAX  (PLAIN_MAX + 20000)

static uint8_t plain[PLAIN_MAX], wire[WIRE_MAX], payload[PLAIN_MAX];

static const char *const key_text[] = {"AAECAwQFBgcICQoLDA0ODw==",
                                       "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="};
static const char *const user_text[] = {"EBESExQVFhcYGRobHB0eHw==",
                                        "EBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8="};

static struct ss_profile *make(const struct ss_method *method, const char *text,
                               struct ss_users *users, bool plugin)
{
    struct ss_profile_options options = {
        .method = method,
        .password = {(const uint8_t *)text, strlen(text)},
        .users = users,
        .first_read_may_be_short = plugin,
    };
    struct ss_profile *profile;

    CHECK(ss_profile_new(&profile, &options) == SS_OK);
    return profile;
}

struct pair {
    const struct ss_method *method;
    struct ss_profile *client, *server;
    uint8_t key[SS_KEY_MAX]; /* of the session */
};

/* Made at their first use and kept. */
static const struct pair *pair_of(uint8_t number, bool users, bool plugin)
{
    static struct pair pairs[8][2][2];
    size_t count, found = 0;
    const struct ss_method *methods = ss_method_all(&count), *of_family[8];

    for (size_t i = 0; i < count && found < 8; i++)
        if (methods[i].family == SS_METHODS_2022)
            of_family[found++] = &methods[i];

    const struct ss_method *method = of_family[number % found];
    bool has_users = users && method->has_identities;
    struct pair *pair = &pairs[number % found][has_users][plugin];
    size_t which = method->key_len == 32;
    char chain[128];

    if (pair->method != NULL)
        return pair;
    pair->method = method;
    for (size_t i = 0; i < method->key_len; i++)
        pair->key[i] = (uint8_t)(has_users ? 16 + i : i);
    if (has_users) {
        const struct ss_user_options user = {
            .name = "u", .password = {(const uint8_t *)user_text[which], strlen(user_text[which])}};
        struct ss_key_fault fault;
        struct ss_users *list;

        CHECK(ss_users_new(&list, method, &user, 1, &fault) == SS_OK);
        pair->server = make(method, key_text[which], list, plugin);
        ss_users_release(list);
        snprintf(chain, sizeof chain, "%s:%s", key_text[which], user_text[which]);
        pair->client = make(method, chain, NULL, plugin);
    } else {
        pair->server = make(method, key_text[which], NULL, plugin);
        pair->client = make(method, key_text[which], NULL, plugin);
    }
    return pair;
}

static size_t head_len(const struct pair *pair)
{
    return pair->method->salt_len + 16 * ss_profile_identity_count(pair->client) + 11 + 16;
}

struct outcome {
    enum ss_status status;
    size_t payload_len;
    bool has_target, is_authenticated;
    struct ss_target target;
};

/* Opens a first read and then pieces, each in memory of exactly its size. */
static void open_wire(const struct ss_profile *profile, size_t len, size_t first, size_t piece_max,
                      struct outcome *outcome)
{
    struct ss_codec *receiver = fuzz_slot(ss_codec_size(profile));
    size_t at = 0, rest_len = 0;

    memset(outcome, 0, sizeof *outcome);
    CHECK(ss_codec_begin(receiver, profile, SS_CODEC_SERVER) == SS_OK);
    while (at < len && outcome->status == SS_OK) {
        size_t piece = at == 0 ? first : 1 + draw((uint32_t)piece_max);
        size_t have;
        uint8_t *bytes;
        struct ss_opened opened;

        if (piece > len - at)
            piece = len - at;
        have = rest_len + piece;
        bytes = malloc(have);
        CHECK(bytes != NULL);
        memcpy(bytes, wire + at - rest_len, have);
        at += piece;
        outcome->status = ss_codec_open(receiver, (struct ss_span){bytes, have}, NOW, &opened);
        CHECK(opened.count <= SS_OPENED_MAX && opened.rest_len <= have);
        CHECK(opened.rest_len <= SS_REST_MAX);
        for (size_t i = 0; i < opened.count; i++) {
            CHECK(opened.payload[i].len != 0);
            CHECK(outcome->payload_len + opened.payload[i].len <= sizeof payload);
            memcpy(payload + outcome->payload_len, opened.payload[i].ptr, opened.payload[i].len);
            outcome->payload_len += opened.payload[i].len;
        }
        CHECK(memcmp(bytes + have - opened.rest_len, wire + at - opened.rest_len,
                     opened.rest_len) == 0);
        rest_len = opened.rest_len;
        if (outcome->status != SS_OK) {
            CHECK(opened.count == 0 && opened.rest_len == 0);
            CHECK(!ss_codec_may_end(receiver, 0));
        }
        free(bytes);
    }
    outcome->is_authenticated = receiver->authenticated;
    outcome->has_target = ss_codec_target(receiver) != NULL;
    if (outcome->has_target)
        outcome->target = *ss_codec_target(receiver);
    ss_codec_retire(receiver);
    free(receiver);
}

/* A request of our own client: writes as long as the input's bytes say. */
static size_t seal_request(const struct pair *pair, struct ss_reader in, size_t *plain_len)
{
    struct ss_codec *sender = fuzz_slot(ss_codec_size(pair->client));
    struct ss_target target;
    struct ss_span out = {wire, sizeof wire};
    struct ss_view nothing = {plain, 0};
    uint8_t size;

    CHECK(ss_target_from_host(&target, "host.example", 443) == SS_OK);
    CHECK(ss_codec_begin(sender, pair->client, SS_CODEC_CLIENT) == SS_OK);
    ss_codec_set_target(sender, &target);
    *plain_len = 0;
    if ((in.len & 1) != 0)
        CHECK(ss_codec_seal(sender, &nothing, &out, NOW) == SS_OK);
    while (ss_read_u8(&in, &size)) {
        size_t len = size < 200 ? 1u + size : (size - 199u) * 700u;
        struct ss_view part = {plain + *plain_len, len};

        if (len > sizeof plain - *plain_len || out.len < len + SEALED_MORE)
            break;
        for (size_t i = 0; i < len; i++)
            plain[*plain_len + i] = (uint8_t)(i * 5 + size);
        if (size % 16 == 3)
            ss_codec_write_was_short(sender);
        CHECK(ss_codec_seal(sender, &part, &out, NOW) == SS_OK && part.len == 0);
        *plain_len += len;
    }
    ss_codec_retire(sender);
    free(sender);
    return sizeof wire - out.len;
}

static void check_sealed(const struct pair *pair, struct ss_reader in, uint8_t options)
{
    static struct outcome outcome;
    size_t plain_len, first;
    size_t len = seal_request(pair, in, &plain_len);
    bool flipped = (options & OPTION_FLIP) != 0 && len != 0;
    bool is_short = (options & OPTION_CUT) != 0 && len != 0;

    if (len == 0)
        return;
    if (flipped)
        wire[draw((uint32_t)len)] ^= (uint8_t)(1u << draw(8));
    first = is_short ? 1 + draw((uint32_t)head_len(pair) - 1)
                     : head_len(pair) + draw((uint32_t)(len - head_len(pair)) + 1);
    open_wire(pair->server, len, first, 1 + draw(5000), &outcome);

    if (is_short && (options & OPTION_PLUGIN) == 0) {
        CHECK(outcome.status == SS_ERR_AUTH && !outcome.is_authenticated && !outcome.has_target);
        return;
    }
    CHECK(outcome.status == (flipped ? SS_ERR_AUTH : SS_OK));
    CHECK(outcome.payload_len <= plain_len);
    CHECK(memcmp(payload, plain, outcome.payload_len) == 0);
    if (!flipped)
        CHECK(outcome.payload_len == plain_len && outcome.has_target);
    if (outcome.has_target)
        CHECK(strcmp(outcome.target.name, "host.example") == 0 && outcome.target.port == 443);
}

/* Seals as our client would, but anything. */
static void seal_part(const struct ss_aead *aead, void *context, uint8_t *nonce, size_t len,
                      uint8_t *at)
{
    CHECK(aead->seal(context, nonce, at, len, at) == SS_OK);
    nonce[0]++;
}

static void check_forged(const struct pair *pair, struct ss_reader in, uint8_t options)
{
    static struct outcome outcome;
    const struct ss_aead *aead = ss_profile_aead(pair->client);
    size_t salt_len = pair->method->salt_len;
    uint8_t *header = wire + head_len(pair) - 27, *variable = wire + head_len(pair);
    void *context = fuzz_slot(aead->context_size);
    uint8_t nonce[SS_AEAD_NONCE_MAX] = {0}, subkey[SS_KEY_MAX], type, distance;
    struct ss_writer writer = {header, 11};
    struct ss_reader body;
    struct ss_target target;
    uint16_t len, padding = 0;
    enum ss_status status;

    if (!ss_read_u8(&in, &type) || !ss_read_u8(&in, &distance) || !ss_read_u16be(&in, &len) ||
        in.len > 0xffff || (options & OPTION_USERS) != 0) {
        free(context);
        return;
    }
    if ((options & OPTION_LENGTH) == 0)
        len = (uint16_t)in.len;
    draw_bytes(wire, salt_len);
    ss_kdf_session_subkey(subkey, (struct ss_view){pair->key, pair->method->key_len},
                          (struct ss_view){wire, salt_len});
    CHECK(aead->init(context) == SS_OK && aead->set_key(context, subkey) == SS_OK);
    CHECK(ss_write_u8(&writer, type) &&
          ss_write_u64be(&writer, (uint64_t)(NOW + (int8_t)distance)) &&
          ss_write_u16be(&writer, len));
    seal_part(aead, context, nonce, 11, header);
    body = in;
    memcpy(variable, in.ptr, in.len);
    seal_part(aead, context, nonce, in.len, variable);
    aead->clear(context);
    free(context);
    open_wire(pair->server, head_len(pair) + in.len + SS_AEAD_TAG_LEN, head_len(pair), 60000,
              &outcome);

    if (type != 0)
        status = SS_ERR_FORMAT;
    else if ((int8_t)distance < -30 || (int8_t)distance > 30)
        status = SS_ERR_STALE;
    else if (len == 0)
        status = SS_ERR_FORMAT;
    else if (len != in.len)
        status = len < in.len ? SS_ERR_AUTH : SS_OK; /* it waits for more */
    else if (ss_target_read(&body, &target) != SS_OK || !ss_read_u16be(&body, &padding) ||
             !ss_read_skip(&body, padding) || (padding == 0 && body.len == 0))
        status = SS_ERR_FORMAT;
    else
        status = SS_OK;
    CHECK(outcome.status == status);
    CHECK(outcome.has_target == (status == SS_OK && len == in.len));
    if (outcome.has_target) {
        CHECK(outcome.payload_len == body.len && memcmp(payload, body.ptr, body.len) == 0);
        CHECK(outcome.target.port == target.port && strcmp(outcome.target.name, target.name) == 0);
    } else {
        CHECK(outcome.payload_len == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ss_reader in = {bytes, len};
    const struct pair *pair;
    uint8_t method, options;
    uint16_t seed;

    if (!ss_read_u8(&in, &method) || !ss_read_u8(&in, &options) || !ss_read_u16be(&in, &seed))
        return 0;
    ss_random_set_source(NULL);
    pair = pair_of(method, (options & OPTION_USERS) != 0, (options & OPTION_PLUGIN) != 0);
    draw_from(seed);
    if ((options & OPTION_FORGED) != 0)
        check_forged(pair, in, options);
    else
        check_sealed(pair, in, options);
    return 0;
}
