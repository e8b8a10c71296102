/*
 * What the ciphers and the codec cost: one line for each method and provider.
 *
 *     bench_codec [--method METHOD] [milliseconds a figure, default 200]
 *
 * In GB of payload a second: seal and open are messages of 16 KiB, in place, by the cipher alone;
 * 16K and 64K are the stream codec, which gets as much a call and makes chunks as large, sealing
 * and opening. In ns: subkey is the key of a salt, or of a datagram session under the 2022 methods;
 * +set that and the setting of it; header the block of AES over a separate header; packet a
 * datagram with a payload of 1,382 bytes and an IPv4 address, one of a batch, sealed and opened by
 * the packet codec, all included. Opening is what sealing and opening take less sealing.
 *
 * Two last lines are the memories of salts: ns to look for a salt and to store it, with 900,000 in
 * the one, and with 200,000 that come and go in the other.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/codec.h"
#include "codec/packet.h"
#include "crypto/block.h"
#include "crypto/kdf.h"
#include "crypto/random.h"

#define MESSAGE 16384
#define PACKET  1382
#define ROOM    (256 * 1024)
#define NOW     1700000000

/* For a sealed one. */
#define PACKET_ROOM 1536
_Static_assert(SS_PACKET_BATCH *PACKET_ROOM <= ROOM, "a batch has room");

struct bench {
    const struct ss_method *method;
    const struct ss_aead *aead; /* NULL: a stream method */
    void *context;
    struct ss_block_key header;
    uint8_t key[SS_KEY_MAX];
    uint8_t salt[SS_SALT_MAX];
    uint8_t nonce[SS_AEAD_NONCE_MAX];
    uint8_t *plain, *wire;
    struct ss_profile *profile;
    struct ss_codec *sender, *receiver;
    size_t write_len, wire_len;
    struct ss_packet_codec *client, *server;
    struct ss_packet_foreseen *foreseen;
    struct ss_packet_sessions *sessions;
    struct ss_packet_link *asking, *answering;
    size_t packet_len;
};

static double figure_s = 0.2;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* others on the machine do not count */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "bench_codec: %s failed\n", what);
        exit(1);
    }
}

static void *slot(size_t size)
{
    void *memory = aligned_alloc(64, size != 0 ? size : 64);

    must(memory != NULL, "aligned_alloc");
    memset(memory, 0, size != 0 ? size : 64);
    return memory;
}

/* Seconds a call, the best of five runs. */
static double time_of(void (*call)(struct bench *), struct bench *bench)
{
    double best = 1e9;

    for (int run = 0; run < 5; run++) {
        double start = now_s();
        double took;
        unsigned long calls = 0, more = 16; /* reading the clock takes as long as some calls do */

        do {
            for (unsigned long i = 0; i < more; i++)
                call(bench);
            calls += more;
            more = calls;
            took = now_s() - start;
        } while (took < figure_s / 5);
        if (took / (double)calls < best)
            best = took / (double)calls;
    }
    return best;
}

/* -- the ciphers -- */

static void seal_message(struct bench *b)
{
    b->nonce[0]++;
    must(b->aead->seal(b->context, b->nonce, b->wire, MESSAGE, b->wire) == SS_OK, "seal");
}

/* Opens the same message again and again, so not in place. */
static void open_message(struct bench *b)
{
    must(b->aead->open(b->context, b->nonce, b->wire, MESSAGE + SS_AEAD_TAG_LEN, b->plain) == SS_OK,
         "open");
}

static void subkey_of(struct bench *b, uint8_t subkey[SS_KEY_MAX])
{
    b->salt[0]++;
    if (b->method->family == SS_METHODS_2017)
        ss_kdf_subkey_2017(subkey, b->key, b->salt, b->method->key_len);
    else
        ss_kdf_session_subkey(subkey, (struct ss_view){b->key, b->method->key_len},
                              (struct ss_view){b->salt, b->method->salt_len});
}

static void derive_subkey(struct bench *b)
{
    uint8_t subkey[SS_KEY_MAX];

    subkey_of(b, subkey);
}

static void set_subkey(struct bench *b)
{
    uint8_t subkey[SS_KEY_MAX];

    subkey_of(b, subkey);
    must(b->aead->set_key(b->context, subkey) == SS_OK, "set_key");
}

static void seal_header(struct bench *b)
{
    ss_block_apply(&b->header, b->salt, b->salt);
}

static void run_cipher(struct bench *b)
{
    double subkey, set;

    if (b->aead == NULL) {
        printf(" %7s %7s", "-", "-");
        return;
    }
    b->context = slot(b->aead->context_size);
    must(b->aead->init(b->context) == SS_OK, "init");
    subkey = time_of(derive_subkey, b);
    set = time_of(set_subkey, b);
    printf(" %7.2f", MESSAGE / time_of(seal_message, b) / 1e9);
    printf(" %7.2f", MESSAGE / time_of(open_message, b) / 1e9);
    printf(" %7.0f %7.0f", subkey * 1e9, set * 1e9);
    if (b->method->has_identities) {
        must(ss_block_key_init(&b->header, SS_BLOCK_ENCRYPT, b->key, b->method->key_len) == SS_OK,
             "ss_block_key_init");
        printf(" %6.0f", time_of(seal_header, b) * 1e9);
    } else {
        printf(" %6s", "-");
    }
    b->aead->clear(b->context);
    free(b->context);
}

/* -- streams -- */

static void seal_stream(struct bench *b)
{
    struct ss_view plain = {b->plain, b->write_len};
    struct ss_span out = {b->wire, ROOM};

    must(ss_codec_seal(b->sender, &plain, &out, NOW) == SS_OK, "ss_codec_seal");
    b->wire_len = (size_t)(out.ptr - b->wire);
}

static void relay_stream(struct bench *b)
{
    struct ss_opened opened;

    seal_stream(b);
    must(ss_codec_open(b->receiver, (struct ss_span){b->wire, b->wire_len}, NOW, &opened) ==
                 SS_OK &&
             opened.payload_len == b->write_len,
         "ss_codec_open");
}

static void run_stream(struct bench *b, size_t len)
{
    struct ss_target target;
    double sealing, relaying;

    b->write_len = len;
    b->sender = slot(ss_codec_size(b->profile));
    b->receiver = slot(ss_codec_size(b->profile));
    must(ss_target_from_host(&target, "192.0.2.1", 80) == SS_OK, "ss_target_from_host");
    must(ss_codec_begin(b->sender, b->profile, SS_CODEC_CLIENT) == SS_OK &&
             ss_codec_begin(b->receiver, b->profile, SS_CODEC_SERVER) == SS_OK,
         "ss_codec_begin");
    ss_codec_set_target(b->sender, &target);
    relay_stream(b); /* keys both */
    relaying = time_of(relay_stream, b);
    sealing = time_of(seal_stream, b);
    printf(" %7.2f %7.2f", (double)len / sealing / 1e9, (double)len / (relaying - sealing) / 1e9);
    ss_codec_retire(b->sender);
    ss_codec_retire(b->receiver);
    free(b->sender);
    free(b->receiver);
}

/* -- datagrams -- */

static void seal_packets(struct bench *b)
{
    static const uint8_t address[] = {1, 192, 0, 2, 1, 1, 187};
    const struct ss_packet_payload payload = {{b->plain + 64, PACKET}, 64, 0, b->asking};

    for (size_t i = 0; i < SS_PACKET_BATCH; i++)
        must(ss_packet_seal(b->client, (struct ss_view){address, sizeof address}, &payload, NOW,
                            (struct ss_span){b->wire + i * PACKET_ROOM, PACKET_ROOM},
                            &b->packet_len) == SS_OK,
             "ss_packet_seal");
}

static void open_packet(struct bench *b, uint8_t *bytes)
{
    struct ss_packet_opened opened;

    must(ss_packet_open(b->server, (struct ss_span){bytes, b->packet_len}, NOW, &opened) == SS_OK,
         "ss_packet_open");
    if (opened.session != NULL && opened.session->owner == NULL) {
        must(ss_packet_link_begin(b->answering, b->server, opened.session) == SS_OK,
             "ss_packet_link_begin");
        opened.session->owner = b;
    }
}

/* Each is opened once, as it must be under the 2022 methods. */
static void relay_packets(struct bench *b)
{
    struct ss_view wires[SS_PACKET_BATCH];

    seal_packets(b);
    for (size_t i = 0; i < SS_PACKET_BATCH; i++)
        wires[i] = (struct ss_view){b->wire + i * PACKET_ROOM, b->packet_len};
    ss_packet_foresee(b->server, b->foreseen, wires, SS_PACKET_BATCH);
    for (size_t i = 0; i < SS_PACKET_BATCH; i++)
        open_packet(b, b->wire + i * PACKET_ROOM);
}

static void run_packets(struct bench *b)
{
    size_t link_size = ss_packet_link_size(b->profile);
    double sealing, relaying;

    b->client = slot(ss_packet_codec_size(b->profile));
    b->server = slot(ss_packet_codec_size(b->profile));
    b->foreseen = ss_packet_foreseen_new();
    must(b->foreseen != NULL, "ss_packet_foreseen_new");
    must(ss_packet_codec_begin(b->client, b->profile, SS_CODEC_CLIENT) == SS_OK &&
             ss_packet_codec_begin(b->server, b->profile, SS_CODEC_SERVER) == SS_OK,
         "ss_packet_codec_begin");
    if (link_size != 0) {
        b->sessions = ss_packet_sessions_new(16);
        must(b->sessions != NULL, "ss_packet_sessions_new");
        ss_packet_codec_set_sessions(b->server, b->sessions);
        b->asking = slot(link_size);
        b->answering = slot(link_size);
        must(ss_packet_link_begin(b->asking, b->client, NULL) == SS_OK, "ss_packet_link_begin");
    }
    relay_packets(b);
    relaying = time_of(relay_packets, b) / SS_PACKET_BATCH;
    sealing = time_of(seal_packets, b) / SS_PACKET_BATCH;
    printf(" %6.0f %6.0f", sealing * 1e9, (relaying - sealing) * 1e9);
    if (link_size != 0) {
        ss_packet_link_retire(b->asking);
        ss_packet_link_retire(b->answering);
    }
    ss_packet_codec_retire(b->client);
    ss_packet_codec_retire(b->server);
    ss_packet_sessions_free(b->sessions);
    free(b->client);
    free(b->server);
    ss_packet_foreseen_free(b->foreseen);
    free(b->asking);
    free(b->answering);
}

static void run(const struct ss_method *method, const struct ss_aead *aead, uint8_t *plain,
                uint8_t *wire)
{
    struct bench b = {.method = method, .aead = aead, .plain = plain, .wire = wire};
    struct ss_profile_options options = {
        .method = method, .aead = aead, .first_chunk_len = MESSAGE};

    ss_random_bytes(b.key, sizeof b.key);
    ss_random_bytes(b.salt, sizeof b.salt);
    options.key = (struct ss_view){b.key, method->key_len};
    must(ss_profile_new(&b.profile, &options) == SS_OK, "ss_profile_new");
    printf("%-29s %-9s", method->name, ss_profile_aead(b.profile)->provider_name);
    run_cipher(&b);
    if (aead == NULL)
        printf(" %7s %7s %6s", "-", "-", "-");
    run_stream(&b, MESSAGE);
    ss_profile_release(b.profile);

    options.first_chunk_len = 0xffff;
    must(ss_profile_new(&b.profile, &options) == SS_OK, "ss_profile_new");
    run_stream(&b, 0xffff);
    run_packets(&b);
    ss_profile_release(b.profile);
    printf("\n");
    fflush(stdout);
}

static void run_salt_memory(void)
{
    enum { FULL = 900000, MORE = 90000 };
    struct ss_salt_memory *memory = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    uint8_t salt[SS_SALT_MAX] = {0};
    double start = 0;

    must(memory != NULL, "ss_salt_memory_new");
    for (uint32_t i = 0; i < FULL + MORE; i++) {
        if (i == FULL)
            start = now_s();
        memcpy(salt, &i, sizeof i);
        must(!ss_salt_memory_contains(memory, salt, sizeof salt), "ss_salt_memory_contains");
        must(ss_salt_memory_store(memory, salt, sizeof salt), "ss_salt_memory_store");
    }
    printf("salt memory: %.0f ns a salt\n", (now_s() - start) / MORE * 1e9);
    ss_salt_memory_free(memory);
}

static void run_salt_pool(void)
{
    enum { A_SECOND = 200000 / 61, FULL = 200000, MORE = 400000 };
    struct ss_salt_pool *pool = ss_salt_pool_new(SS_SALT_POOL_DEFAULT);
    uint8_t salt[SS_SALT_MAX] = {0};
    double start = 0;

    must(pool != NULL, "ss_salt_pool_new");
    for (uint32_t i = 0; i < FULL + MORE; i++) {
        if (i == FULL)
            start = now_s();
        memcpy(salt, &i, sizeof i);
        must(ss_salt_pool_store(pool, salt, sizeof salt, NOW + i / A_SECOND, NOW + i / A_SECOND) ==
                 SS_OK,
             "ss_salt_pool_store");
    }
    printf("salt pool: %.0f ns a salt\n", (now_s() - start) / MORE * 1e9);
    ss_salt_pool_free(pool);
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    uint8_t *plain = malloc(2 * ROOM);
    uint8_t *wire = malloc(2 * ROOM);

    if (argc > 2 && strcmp(argv[1], "--method") == 0) {
        only = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc > 1)
        figure_s = atof(argv[1]) / 1000;
    must(plain != NULL && wire != NULL, "malloc");
    must(ss_random_start() == SS_OK, "ss_random_start");
    memset(plain, 7, 2 * ROOM);
    memset(wire, 7, 2 * ROOM);
    printf("%-29s %-9s %7s %7s %7s %7s %6s %7s %7s %7s %7s %6s %6s\n", "GB/s and ns", "", "seal",
           "open", "subkey", "+set", "header", "seal16K", "open16K", "seal64K", "open64K", "packet",
           "open");
    for (size_t i = 0; i < count; i++) {
        if (only != NULL && strcmp(only, methods[i].name) != 0)
            continue;
        if (methods[i].aead == SS_AEAD_ALGORITHM_COUNT)
            run(&methods[i], NULL, plain, wire);
        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead =
                ss_aead_find(methods[i].aead, (enum ss_aead_provider)provider);

            if (aead != NULL)
                run(&methods[i], aead, plain, wire);
        }
    }
    if (only == NULL) {
        run_salt_memory();
        run_salt_pool();
    }
    free(plain);
    free(wire);
    return 0;
}
