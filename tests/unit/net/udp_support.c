/* A pair of datagram sockets on loopback, and a count of heap calls. */
#include "udp_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>

#include "net/socket.h"

#define PATIENCE_MS 10000
#define MOMENT_MS   50

static unsigned long calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_malloc(size_t size)
{
    calls++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    calls++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    calls++;
    return __real_realloc(block, size);
}

unsigned long heap_calls(void)
{
    return calls;
}

struct ss_addr address(const char *text, uint16_t port)
{
    struct ss_addr addr = {.port = port};

    assert_int_equal(ss_ip_parse(&addr.ip, text), SS_OK);
    return addr;
}

uint16_t port_of(int fd)
{
    struct ss_addr addr;

    ss_socket_local(fd, &addr);
    return addr.port;
}

void pair_open(struct pair *pair, const struct pair_kind *kind,
               const struct ss_udp_socket_options *receiver_options)
{
    struct ss_addr listen = address(kind->listen, 0);
    struct ss_addr from = address(kind->from, 0);
    const struct ss_udp_socket_options plain = {0};

    memset(pair, 0, sizeof *pair);
    pair->sender = -1;
    if (ss_udp_open(&pair->receiver, &listen, receiver_options, NULL) == SS_ERR_UNREACHABLE) {
        print_message("no address %s here\n", kind->listen);
        skip();
    }
    assert_true(pair->receiver >= 0);
    assert_int_equal(ss_udp_open(&pair->sender, &from, &plain, NULL), SS_OK);
    pair->to = address(kind->to, port_of(pair->receiver));
    pair->sender_family = from.ip.family;
    ss_socket_local(pair->sender, &pair->sender_addr);
    pair->inbox = ss_udp_inbox_new();
    pair->outbox = ss_udp_outbox_new();
    assert_non_null(pair->inbox);
    assert_non_null(pair->outbox);
}

void pair_close(struct pair *pair)
{
    ss_udp_inbox_free(pair->inbox);
    ss_udp_outbox_free(pair->outbox);
    ss_socket_close(pair->receiver);
    ss_socket_close(pair->sender);
}

void pair_send(struct pair *pair, struct ss_view bytes)
{
    ss_udp_send(pair->outbox, pair->sender, pair->sender_family, &pair->to, NO_ADDRESS, bytes);
}

void wait_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
}

size_t pair_receive(struct pair *pair)
{
    size_t count;

    if (!ss_udp_holds_more(pair->inbox))
        wait_readable(pair->receiver);
    count = ss_udp_receive(pair->inbox, pair->receiver, pair->got);
    assert_in_range(count, 1, SS_UDP_BATCH);
    return count;
}

bool pair_is_quiet(struct pair *pair)
{
    struct pollfd wait = {.fd = pair->receiver, .events = POLLIN};

    return poll(&wait, 1, MOMENT_MS) == 0 &&
           ss_udp_receive(pair->inbox, pair->receiver, pair->got) == 0;
}

void fill(uint8_t *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

bool is_filled(const uint8_t *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
            return false;
    }
    return true;
}
