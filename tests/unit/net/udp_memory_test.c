/* What datagrams cost in memory: nothing of the heap, and the pages that they touch. */
#include "net/udp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/pages.h"
#include "net/socket.h"
#include "udp_support.h"

static const struct pair_kind ipv4 = {"127.0.0.1", "127.0.0.1", "127.0.0.1"};
static const struct ss_udp_socket_options no_options = {0};

static uint8_t payload[SS_UDP_PAYLOAD_MAX];

static void sending_and_receiving_ask_the_heap_for_nothing(void **state)
{
    static const size_t sizes[] = {0, 1, 1400, 60000};
    struct pair pair;
    unsigned long before;

    (void)state;
    before = heap_calls();
    pair_open(&pair, &ipv4, &no_options);
    assert_true(heap_calls() > before); /* the count sees what it is to see */

    before = heap_calls();
    for (unsigned round = 0; round < 40; round++) {
        /* What the smallest receive buffer of a system takes. */
        size_t len = sizes[round % 4];
        unsigned count = len > 1400 ? 1 : SS_UDP_BATCH;
        unsigned seen = 0;

        for (unsigned i = 0; i < count; i++)
            pair_send(&pair, (struct ss_view){payload, len});
        ss_udp_flush(pair.outbox);
        while (seen < count)
            seen += (unsigned)pair_receive(&pair);
    }
    assert_int_equal(heap_calls(), before);
    pair_close(&pair);
}

/* Resident pages of a slot, from its headroom on to well behind the payload. */
static size_t resident(const struct ss_datagram *datagram)
{
    unsigned char pages[64];
    size_t len = ss_pages_round(SS_UDP_HEADROOM + datagram->bytes.len + 40000);
    size_t count = 0;

    assert_true(len / ss_pages_size() <= sizeof pages);
    assert_int_equal(mincore(datagram->bytes.ptr - SS_UDP_HEADROOM, len, pages), 0);
    for (size_t i = 0; i < len / ss_pages_size(); i++)
        count += pages[i] & 1;
    return count;
}

/* Has datagrams of these lengths, all from `bytes`, received by one call. Loopback delivers before
 * a flush returns, but on a busy system it may be a moment later: then they are sent again. */
static void exchange_together(struct pair *pair, const uint8_t *bytes, const size_t *lens,
                              size_t count)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        size_t seen;

        for (size_t i = 0; i < count; i++)
            pair_send(pair, (struct ss_view){bytes, lens[i]});
        ss_udp_flush(pair->outbox);
        seen = pair_receive(pair);
        if (seen == count)
            return;
        while (seen < count)
            seen += pair_receive(pair);
    }
    fail_msg("%zu datagrams never came together", count);
}

static void a_datagram_touches_the_pages_that_it_covers(void **state)
{
    struct pair pair;
    size_t lens[30];

    (void)state;
    pair_open(&pair, &ipv4, &no_options);
    for (unsigned i = 0; i < 30; i++)
        lens[i] = 1400 + i; /* growing ones are not joined */
    exchange_together(&pair, payload, lens, 30);
    for (unsigned i = 0; i < 30; i++)
        assert_in_range(resident(&pair.got[i]), 1, 2);
    pair_close(&pair);
}

static void pages_of_a_large_datagram_behind_others_go_back(void **state)
{
    size_t lens[21];
    struct pair pair;

    (void)state;
    pair_open(&pair, &ipv4, &no_options);
    for (unsigned i = 0; i < 21; i++)
        lens[i] = i == 20 ? 25000 : 100 + i;
    exchange_together(&pair, payload, lens, 21);
    assert_true(resident(&pair.got[20]) * ss_pages_size() >= 25000);

    lens[20] = 120;
    exchange_together(&pair, payload, lens, 21);
    assert_in_range(resident(&pair.got[20]), 1, 2);
    pair_close(&pair);
}

static void the_room_around_a_datagram_is_its_own(void **state)
{
    const size_t largest = sizeof payload;
    size_t lens[SS_UDP_BATCH];
    struct pair pair;

    (void)state;
    fill(payload, sizeof payload, 1);
    pair_open(&pair, &ipv4, &no_options);
    for (unsigned i = 0; i < SS_UDP_BATCH; i++)
        lens[i] = 200 + i;
    exchange_together(&pair, payload, lens, SS_UDP_BATCH);
    for (unsigned i = 0; i < SS_UDP_BATCH; i++) {
        memset(pair.got[i].bytes.ptr - SS_UDP_HEADROOM, 0xee, SS_UDP_HEADROOM);
        memset(pair.got[i].bytes.ptr + pair.got[i].bytes.len, 0xee, SS_UDP_TAILROOM);
    }
    for (unsigned i = 0; i < SS_UDP_BATCH; i++) {
        assert_int_equal(pair.got[i].bytes.len, lens[i]);
        assert_memory_equal(pair.got[i].bytes.ptr, payload, lens[i]);
    }

    exchange_together(&pair, payload, &largest, 1);
    memset(pair.got[0].bytes.ptr - SS_UDP_HEADROOM, 0xee, SS_UDP_HEADROOM);
    memset(pair.got[0].bytes.ptr + largest, 0xee, SS_UDP_TAILROOM);
    assert_int_equal(pair.got[0].bytes.len, largest);
    assert_memory_equal(pair.got[0].bytes.ptr, payload, largest);
    pair_close(&pair);
}

static void nothing_is_freed_without_harm(void **state)
{
    (void)state;
    ss_udp_inbox_free(NULL);
    ss_udp_outbox_free(NULL);
}

int udp_memory_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sending_and_receiving_ask_the_heap_for_nothing),
        cmocka_unit_test(a_datagram_touches_the_pages_that_it_covers),
        cmocka_unit_test(pages_of_a_large_datagram_behind_others_go_back),
        cmocka_unit_test(the_room_around_a_datagram_is_its_own),
        cmocka_unit_test(nothing_is_freed_without_harm),
    };

    return cmocka_run_group_tests_name("udp_memory", tests, NULL, NULL);
}
