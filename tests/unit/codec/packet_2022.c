/* What the tests of 2022 datagrams share. */
#include "packet_2022.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "vectors/read.h"

struct ss_packet_codec *packet_codec(const struct ss_profile *profile, enum ss_codec_role role,
                                     struct ss_packet_sessions *sessions)
{
    size_t size = ss_packet_codec_size(profile);
    struct ss_packet_codec *codec = aligned_alloc(64, size);

    assert_non_null(codec);
    memset(codec, 0, size);
    assert_int_equal(ss_packet_codec_begin(codec, profile, role), SS_OK);
    if (sessions != NULL)
        ss_packet_codec_set_sessions(codec, sessions);
    return codec;
}

void free_packet_codec_2022(struct ss_packet_codec *codec)
{
    ss_packet_codec_end(codec);
    ss_packet_codec_retire(codec);
    free(codec);
}

/* Large enough for every method. */
#define LINK_SIZE 4096

struct ss_packet_link *link_of(struct ss_packet_codec *codec, struct ss_packet_session *session)
{
    struct ss_packet_link *link = aligned_alloc(64, LINK_SIZE);

    assert_non_null(link);
    memset(link, 0, LINK_SIZE);
    assert_int_equal(ss_packet_link_begin(link, codec, session), SS_OK);
    return link;
}

void free_link(struct ss_packet_link *link)
{
    ss_packet_link_end(link);
    ss_packet_link_end(link); /* fine when idle */
    ss_packet_link_retire(link);
    for (size_t i = 0; i < LINK_SIZE; i++)
        assert_int_equal(((uint8_t *)link)[i], 0);
    free(link);
}

struct ss_view packet_address(const char *host, uint16_t port)
{
    static uint8_t bytes[SS_TARGET_MAX];
    struct ss_target target = target_of(host, port);
    struct ss_writer out = {bytes, sizeof bytes};

    assert_int_equal(ss_target_write(&out, &target), SS_OK);
    return (struct ss_view){bytes, sizeof bytes - out.len};
}

size_t seal_exactly(struct ss_packet_codec *codec, struct ss_packet_link *link,
                    struct ss_view address, const uint8_t *payload, size_t len, int64_t now_s,
                    uint8_t *out)
{
    const struct ss_packet_payload from = {{(uint8_t *)(uintptr_t)payload, len}, 0, 0, link};
    size_t wanted = ss_packet_head_len(codec, address.len) + len + SS_PACKET_TAIL;
    size_t sealed_len;

    assert_int_equal(ss_packet_seal(codec, address, &from, now_s, (struct ss_span){out, wanted - 1},
                                    &sealed_len),
                     SS_NEED_ROOM);
    assert_int_equal(
        ss_packet_seal(codec, address, &from, now_s, (struct ss_span){out, wanted}, &sealed_len),
        SS_OK);
    assert_int_equal(sealed_len, wanted);
    return sealed_len;
}

enum ss_status open_copy_2022(struct ss_packet_codec *codec, struct ss_packet_link *link,
                              const uint8_t *bytes, size_t len, int64_t now_s,
                              struct ss_packet_opened *opened, uint8_t *plain)
{
    uint8_t *copy = malloc(len != 0 ? len : 1);
    enum ss_status status;

    assert_non_null(copy);
    if (len != 0)
        memcpy(copy, bytes, len);
    status = link != NULL
                 ? ss_packet_open_reply(codec, link, (struct ss_span){copy, len}, now_s, opened)
                 : ss_packet_open(codec, (struct ss_span){copy, len}, now_s, opened);
    if (status == SS_OK) {
        bool passed = opened->user != NULL && opened->user->next != NULL;
        uint8_t address[SS_TARGET_MAX];
        struct ss_writer out = {address, sizeof address};

        assert_ptr_equal(opened->address.ptr + opened->address.len, opened->payload.ptr);
        assert_true(opened->address.ptr - copy >= 16);
        if (passed) {
            assert_int_equal(opened->address.len, 0);
            assert_ptr_equal(opened->payload.ptr + opened->payload.len, copy + len);
        } else {
            assert_int_equal(ss_target_write(&out, &opened->target), SS_OK);
            assert_int_equal(sizeof address - out.len, opened->address.len);
            assert_memory_equal(address, opened->address.ptr, opened->address.len);
            assert_ptr_equal(opened->payload.ptr + opened->payload.len + SS_PACKET_TAIL,
                             copy + len);
        }
        assert_true((opened->session != NULL) == (link == NULL));
        if (opened->payload.len != 0)
            memcpy(plain, opened->payload.ptr, opened->payload.len);
    }
    free(copy);
    return status;
}
