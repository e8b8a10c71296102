/*
 * What the ciphers and the codec cost: one line for each method and provider.
 *
 *     bench_codec [milliseconds a figure, default 200]
 *
 * seal and open are GB of payload a second in messages of 16 KiB and 1,400 bytes, in place, by the
 * cipher alone; codec is the stream codec with the largest chunks, sealing and opening 256 KiB a
 * call; hkdf is the subkey of a salt, +setkey that and the setting of it, in ns; packet is a whole
 * datagram of 1,400 bytes by the packet codec, in ns, sealed and opened. A last line is the salt
 * memory: ns to look for a salt and to store it, when it holds 900,000.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/codec.h"
#include "codec/packet.h"
#include "crypto/kdf.h"
#include "crypto/random.h"

#define LARGE  16384
#define SMALL  1400
#define STREAM (256 * 1024)

struct bench {
    const struct ss_method *method;
    const struct ss_aead *aead;
    void *context;
    uint8_t key[SS_KEY_MAX];
    uint8_t salt[SS_SALT_MAX];
    uint8_t nonce[SS_AEAD_NONCE_MAX];
    uint8_t *plain, *wire;
    size_t message_len, wire_len;
    struct ss_profile *profile;
    struct ss_codec *sender, *receiver;
    struct ss_packet_codec *packets;
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

/* Seconds a call, the best of three runs. */
static double time_of(void (*call)(struct bench *), struct bench *bench)
{
    double best = 1e9;

    for (int run = 0; run < 3; run++) {
        double start = now_s();
        double took;
        unsigned long calls = 0;

        do {
            for (int i = 0; i < 16; i++)
                call(bench);
            calls += 16;
            took = now_s() - start;
        } while (took < figure_s / 3);
        if (took / (double)calls < best)
            best = took / (double)calls;
    }
    return best;
}

static void seal_message(struct bench *b)
{
    b->nonce[0]++;
    must(b->aead->seal(b->context, b->nonce, b->wire, b->message_len, b->wire) == SS_OK, "seal");
}

/* Opens the same message again and again, so not in place. */
static void open_message(struct bench *b)
{
    must(b->aead->open(b->context, b->nonce, b->wire, b->message_len + SS_AEAD_TAG_LEN, b->plain) ==
             SS_OK,
         "open");
}

static void set_subkey(struct bench *b)
{
    uint8_t subkey[SS_KEY_MAX];

    b->salt[0]++;
    ss_kdf_subkey_2017(subkey, b->key, b->salt, b->method->key_len);
    must(b->aead->set_key(b->context, subkey) == SS_OK, "set_key");
}

static void derive_subkey(struct bench *b)
{
    uint8_t subkey[SS_KEY_MAX];

    b->salt[0]++;
    ss_kdf_subkey_2017(subkey, b->key, b->salt, b->method->key_len);
}

static void seal_stream(struct bench *b)
{
    struct ss_view plain = {b->plain, STREAM};
    struct ss_span out = {b->wire, 2 * STREAM};

    must(ss_codec_seal(b->sender, &plain, &out, 0) == SS_OK, "ss_codec_seal");
    b->wire_len = (size_t)(out.ptr - b->wire);
}

static void relay_stream(struct bench *b)
{
    struct ss_opened opened;

    seal_stream(b);
    must(ss_codec_open(b->receiver, (struct ss_span){b->wire, b->wire_len}, 0, &opened) == SS_OK &&
             opened.payload_len == STREAM,
         "ss_codec_open");
}

static void seal_packet(struct bench *b)
{
    static const uint8_t address[] = {1, 192, 0, 2, 1, 0, 53};
    const struct ss_packet_payload payload = {{b->plain + 64, SMALL}, 64, 0, NULL};

    must(ss_packet_seal(b->packets, (struct ss_view){address, sizeof address}, &payload, 0,
                        (struct ss_span){b->wire, STREAM}, &b->packet_len) == SS_OK,
         "ss_packet_seal");
}

/* The copy, as opening is in place, is part of the figure. */
static void open_packet(struct bench *b)
{
    struct ss_packet_opened opened;

    memcpy(b->wire + STREAM, b->wire, b->packet_len);
    must(ss_packet_open(b->packets, (struct ss_span){b->wire + STREAM, b->packet_len}, 0,
                        &opened) == SS_OK,
         "ss_packet_open");
}

static struct ss_codec *codec_of(const struct ss_profile *profile, enum ss_codec_role role)
{
    size_t size = ss_codec_size(profile);
    struct ss_codec *codec = aligned_alloc(64, size);

    must(codec != NULL, "aligned_alloc");
    memset(codec, 0, size);
    must(ss_codec_begin(codec, profile, role) == SS_OK, "ss_codec_begin");
    return codec;
}

static void run(const struct ss_method *method, const struct ss_aead *aead, uint8_t *plain,
                uint8_t *wire)
{
    struct bench b = {.method = method, .aead = aead, .plain = plain, .wire = wire};
    struct ss_profile_options options = {.method = method, .aead = aead};
    const size_t lens[] = {LARGE, SMALL};
    double seal[2], open[2];
    double key, subkey, sealing, relaying, packet_seal, packet_open;

    b.context = aligned_alloc(64, aead->context_size);
    must(b.context != NULL, "aligned_alloc");
    memset(b.context, 0, aead->context_size);
    must(aead->init(b.context) == SS_OK, "init");
    ss_random_bytes(b.key, sizeof b.key);
    ss_random_bytes(b.salt, sizeof b.salt);
    key = time_of(set_subkey, &b);
    subkey = time_of(derive_subkey, &b);
    for (int i = 0; i < 2; i++) {
        b.message_len = lens[i];
        seal[i] = (double)lens[i] / time_of(seal_message, &b) / 1e9;
        open[i] = (double)lens[i] / time_of(open_message, &b) / 1e9;
    }
    aead->clear(b.context);
    free(b.context);

    options.key = (struct ss_view){b.key, method->key_len};
    must(ss_profile_new(&b.profile, &options) == SS_OK, "ss_profile_new");
    b.sender = codec_of(b.profile, SS_CODEC_SERVER);
    b.receiver = codec_of(b.profile, SS_CODEC_CLIENT);
    relay_stream(&b); /* keys both */
    relaying = time_of(relay_stream, &b);
    sealing = time_of(seal_stream, &b);
    ss_codec_retire(b.sender);
    ss_codec_retire(b.receiver);
    free(b.sender);
    free(b.receiver);

    b.packets = aligned_alloc(64, ss_packet_codec_size(b.profile));
    must(b.packets != NULL, "aligned_alloc");
    memset(b.packets, 0, ss_packet_codec_size(b.profile));
    must(ss_packet_codec_begin(b.packets, b.profile, SS_CODEC_SERVER) == SS_OK,
         "ss_packet_codec_begin");
    packet_seal = time_of(seal_packet, &b);
    packet_open = time_of(open_packet, &b);
    ss_packet_codec_retire(b.packets);
    free(b.packets);
    ss_profile_free(b.profile);

    printf("%-24s %-10s %7.2f %7.2f %9.2f %7.2f %9.2f %7.2f %7.0f %7.0f %7.0f %7.0f\n",
           method->name, aead->provider_name, seal[0], open[0], seal[1], open[1],
           STREAM / sealing / 1e9, STREAM / (relaying - sealing) / 1e9, subkey * 1e9, key * 1e9,
           packet_seal * 1e9, packet_open * 1e9);
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

int main(int argc, char **argv)
{
    size_t count;
    const struct ss_method *methods = ss_method_all(&count);
    uint8_t *plain = malloc(2 * STREAM);
    uint8_t *wire = malloc(2 * STREAM);

    if (argc > 1)
        figure_s = atof(argv[1]) / 1000;
    must(plain != NULL && wire != NULL, "malloc");
    must(ss_random_start() == SS_OK, "ss_random_start");
    memset(plain, 7, 2 * STREAM);
    memset(wire, 7, 2 * STREAM);
    printf("%-24s %-10s %7s %7s %9s %7s %9s %7s %7s %7s %7s %7s\n", "GB/s", "", "seal16K",
           "open16K", "seal1400", "open", "codecseal", "open", "ns hkdf", "+setkey", "packet",
           "open");
    for (size_t i = 0; i < count; i++)
        for (int provider = 0; provider < SS_AEAD_PROVIDER_COUNT; provider++) {
            const struct ss_aead *aead =
                ss_aead_find(methods[i].aead, (enum ss_aead_provider)provider);

            if (aead != NULL && methods[i].family == SS_METHODS_2017)
                run(&methods[i], aead, plain, wire);
        }
    run_salt_memory();
    free(plain);
    free(wire);
    return 0;
}
