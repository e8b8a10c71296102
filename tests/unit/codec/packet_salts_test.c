/* Salts that are drawn ahead and foreseen: nothing comes out differently. */
#include "codec/packet.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/random.h"
#include "support.h"
#include "vectors/read.h"

#define COUNT 150
#define ROOM  256

/* Datagrams of one sender, as they are on the wire. */
struct sent {
    uint8_t bytes[COUNT][ROOM];
    size_t len[COUNT];
    bool was_opened[COUNT];
};

static struct ss_packet_codec *begin(const struct ss_profile *profile, enum ss_codec_role role)
{
    size_t size = ss_packet_codec_size(profile);
    struct ss_packet_codec *codec = aligned_alloc(64, size);

    assert_non_null(codec);
    memset(codec, 0, size);
    assert_int_equal(ss_packet_codec_begin(codec, profile, role), SS_OK);
    return codec;
}

static void end(struct ss_packet_codec *codec)
{
    ss_packet_codec_retire(codec);
    free(codec);
}

static void seal_all_of(struct sent *sent, const struct ss_profile *profile)
{
    static const uint8_t address[] = {1, 192, 0, 2, 1, 1, 187};
    struct ss_packet_codec *codec = begin(profile, SS_CODEC_CLIENT);

    memset(sent, 0, sizeof *sent);
    for (size_t i = 0; i < COUNT; i++) {
        uint8_t payload[100];
        const struct ss_packet_payload from = {{payload, i % sizeof payload}, 0, 0, NULL};

        memset(payload, (int)i, sizeof payload);
        assert_int_equal(ss_packet_seal(codec, (struct ss_view){address, sizeof address}, &from, 0,
                                        (struct ss_span){sent->bytes[i], ROOM}, &sent->len[i]),
                         SS_OK);
    }
    end(codec);
}

/* Opens a copy, of which a bit of the tag is flipped when it is spoilt. */
static void open_one(struct ss_packet_codec *codec, struct sent *sent, size_t i, bool is_spoilt)
{
    enum ss_status wanted = sent->was_opened[i] ? SS_ERR_REPLAY : is_spoilt ? SS_ERR_AUTH : SS_OK;
    struct ss_packet_opened opened;
    uint8_t copy[ROOM];

    memcpy(copy, sent->bytes[i], sent->len[i]);
    copy[sent->len[i] - 1] ^= is_spoilt;
    assert_int_equal(ss_packet_open(codec, (struct ss_span){copy, sent->len[i]}, 0, &opened),
                     wanted);
    if (wanted != SS_OK)
        return;
    sent->was_opened[i] = true;
    assert_int_equal(opened.payload.len, i % 100);
    for (size_t k = 0; k < opened.payload.len; k++)
        assert_int_equal(opened.payload.ptr[k], (uint8_t)i);
}

static void check_draws(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_salt_memory *memory = ss_salt_memory_new(SS_SALT_MEMORY_CLIENT);
    struct ss_profile *profile = profile_of(method, aead, memory);
    struct sent *sent = malloc(sizeof *sent);

    assert_non_null(memory);
    assert_non_null(sent);
    seal_all_of(sent, profile);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(sent->bytes[i], sent->bytes[k], method->salt_len);
        assert_true(ss_salt_memory_contains(memory, sent->bytes[i], method->salt_len));
    }
    free(sent);
    ss_profile_release(profile);
    ss_salt_memory_free(memory);
}

static void no_salt_is_used_twice_and_each_is_remembered(void **state)
{
    (void)state;
    for_each_provider(check_draws);
}

/* Batches of anything: in order or not, of what comes and of what does not, cut, twice. */
static void check_batches(const struct ss_method *method, const struct ss_aead *aead)
{
    struct ss_salt_memory *memory = ss_salt_memory_new(SS_SALT_MEMORY_SERVER);
    struct ss_profile *client = profile_of(method, aead, NULL);
    struct ss_profile *server = profile_of(method, aead, memory);
    struct ss_packet_codec *codec = begin(server, SS_CODEC_SERVER);
    struct ss_packet_codec *other = begin(client, SS_CODEC_SERVER);
    struct ss_packet_foreseen *foreseen = ss_packet_foreseen_new();
    struct sent *sent = malloc(sizeof *sent);
    size_t next = 0;

    assert_non_null(memory);
    assert_non_null(foreseen);
    assert_non_null(sent);
    seal_all_of(sent, client);
    for (size_t round = 0; round < 200; round++) {
        struct ss_view wires[SS_PACKET_BATCH + 8];
        size_t count = ss_random_below(SS_PACKET_BATCH + 9), order[SS_PACKET_BATCH + 8];
        bool in_order = ss_random_below(3) != 0;

        for (size_t i = 0; i < count; i++) {
            order[i] = in_order ? next++ % COUNT : ss_random_below(COUNT);
            wires[i] = (struct ss_view){sent->bytes[order[i]], sent->len[order[i]]};
            if (ss_random_below(10) == 0)
                wires[i].len = ss_random_below((uint32_t)wires[i].len);
        }
        ss_packet_foresee(codec, foreseen, wires, count);
        for (size_t i = 0; i < count; i++) {
            switch (ss_random_below(12)) {
            case 0: /* left out */
                break;
            case 3: /* another codec's batch takes the place, now and then */
                if (ss_random_below(10) == 0)
                    ss_packet_foresee(other, foreseen, wires, count);
                open_one(codec, sent, order[i], false);
                break;
            case 1: /* another one */
                open_one(codec, sent, ss_random_below(COUNT), false);
                break;
            case 2: /* twice */
                open_one(codec, sent, order[i], true);
                open_one(codec, sent, order[i], false);
                open_one(codec, sent, order[i], false);
                break;
            default:
                open_one(codec, sent, order[i], ss_random_below(8) == 0);
            }
        }
    }
    ss_packet_foresee(codec, foreseen, NULL, 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(sent->was_opened[i]);
        open_one(codec, sent, i, false); /* a repeat */
    }
    end(codec);
    end(other);
    ss_packet_foreseen_free(foreseen);
    free(sent);
    ss_profile_release(client);
    ss_profile_release(server);
    ss_salt_memory_free(memory);
}

static void what_is_foreseen_changes_nothing(void **state)
{
    (void)state;
    for_each_provider(check_batches);
}

int packet_salts_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_salt_is_used_twice_and_each_is_remembered),
        cmocka_unit_test(what_is_foreseen_changes_nothing),
    };

    return cmocka_run_group_tests_name("codec/packet salts", tests, NULL, NULL);
}
