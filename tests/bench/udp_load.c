/*
 * Datagrams for measurements: sends them and counts what comes back, or sends back what comes.
 *
 *     udp_load --echo PORT
 *     udp_load --to PORT --size BYTES --count N (--rate N --burst N | --window N) [--prefix HEX]
 *
 * All on 127.0.0.1. With --rate, bursts of --burst datagrams leave at even times; with --window as
 * many are on their way as it says, and what does not come back within 200 ms counts as lost.
 * --prefix stands in front of each (the header of a SOCKS5 datagram), and in front of what comes
 * back. Prints one line of JSON: sent, received, seconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH      64
#define ROOM       2048
#define LOST_NS    INT64_C(200000000)
#define BUFFER     (8 << 20)
#define PREFIX_MAX 300

struct load {
    int fd;
    size_t size, prefix_len;
    uint64_t count, rate, burst, window;
    uint8_t prefix[PREFIX_MAX];
    uint64_t sent, received, outstanding;
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    struct sockaddr_in names[BATCH];
    uint8_t bytes[BATCH][ROOM];
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "udp_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_socket(uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0), buffer = BUFFER;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0)
        fail("bind");
    /* Beyond the system's bound where we may, so that it is not this end that loses any. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    return fd;
}

static void prepare(struct load *load)
{
    for (size_t i = 0; i < BATCH; i++) {
        load->vectors[i] = (struct iovec){load->bytes[i], ROOM};
        load->messages[i].msg_hdr = (struct msghdr){.msg_name = &load->names[i],
                                                    .msg_namelen = sizeof load->names[i],
                                                    .msg_iov = &load->vectors[i],
                                                    .msg_iovlen = 1};
    }
}

static unsigned receive(struct load *load)
{
    int count;

    prepare(load);
    count = recvmmsg(load->fd, load->messages, BATCH, MSG_DONTWAIT, NULL);
    return count > 0 ? (unsigned)count : 0;
}

static void echo(struct load *load)
{
    struct pollfd wait = {.fd = load->fd, .events = POLLIN};

    for (;;) {
        unsigned count;

        poll(&wait, 1, -1);
        while ((count = receive(load)) != 0) {
            for (unsigned i = 0; i < count; i++)
                load->vectors[i].iov_len = load->messages[i].msg_len;
            sendmmsg(load->fd, load->messages, count, 0);
        }
    }
}

static void send_some(struct load *load, const struct sockaddr_in *to, uint64_t want)
{
    while (want != 0) {
        unsigned count = want < BATCH ? (unsigned)want : BATCH;
        int sent;

        for (unsigned i = 0; i < count; i++) {
            uint64_t number = load->sent + i;

            memcpy(load->bytes[i], load->prefix, load->prefix_len);
            memcpy(load->bytes[i] + load->prefix_len, &number, sizeof number);
            load->names[i] = *to;
            load->vectors[i] = (struct iovec){load->bytes[i], load->prefix_len + load->size};
            load->messages[i].msg_hdr = (struct msghdr){.msg_name = &load->names[i],
                                                        .msg_namelen = sizeof *to,
                                                        .msg_iov = &load->vectors[i],
                                                        .msg_iovlen = 1};
        }
        sent = sendmmsg(load->fd, load->messages, count, 0);
        if (sent <= 0) {
            if (errno != EINTR && errno != ECONNREFUSED)
                fail("sendmmsg");
            continue;
        }
        load->sent += (unsigned)sent;
        load->outstanding += (unsigned)sent;
        want -= (unsigned)sent;
    }
}

static void take_answers(struct load *load)
{
    unsigned count;

    while ((count = receive(load)) != 0) {
        for (unsigned i = 0; i < count; i++) {
            if (load->messages[i].msg_len != load->prefix_len + load->size) {
                fprintf(stderr, "udp_load: an answer of %u bytes\n", load->messages[i].msg_len);
                exit(1);
            }
        }
        load->received += count;
        load->outstanding -= count < load->outstanding ? count : load->outstanding;
    }
}

static void wait_for(struct load *load, int64_t until_ns)
{
    struct pollfd wait = {.fd = load->fd, .events = POLLIN};
    int64_t left = until_ns - now_ns();
    struct timespec span = {.tv_sec = left > 0 ? left / 1000000000 : 0,
                            .tv_nsec = left > 0 ? left % 1000000000 : 0};

    ppoll(&wait, 1, &span, NULL);
    take_answers(load);
}

static void run_paced(struct load *load, const struct sockaddr_in *to)
{
    int64_t step = (int64_t)(UINT64_C(1000000000) * load->burst / load->rate);
    int64_t next = now_ns();

    while (load->sent < load->count) {
        send_some(load, to, load->burst);
        next += step;
        while (now_ns() < next)
            wait_for(load, next);
    }
}

static void run_windowed(struct load *load, const struct sockaddr_in *to)
{
    while (load->sent < load->count) {
        uint64_t before = load->received;

        if (load->outstanding < load->window)
            send_some(load, to, load->window - load->outstanding);
        wait_for(load, now_ns() + LOST_NS);
        if (load->received == before)
            load->outstanding = 0;
    }
}

static void parse_prefix(struct load *load, const char *hex)
{
    size_t len = strlen(hex) / 2;

    if (len > PREFIX_MAX)
        exit(2);
    for (size_t i = 0; i < len; i++) {
        unsigned byte;

        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            exit(2);
        load->prefix[i] = (uint8_t)byte;
    }
    load->prefix_len = len;
}

int main(int argc, char **argv)
{
    static struct load load;
    struct sockaddr_in to = {.sin_family = AF_INET};
    int64_t start, end;

    load.size = 1200;
    load.count = 2000;
    load.burst = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t number = strtoull(argv[i + 1], NULL, 10);

        if (strcmp(argv[i], "--echo") == 0) {
            load.fd = open_socket((uint16_t)number);
            printf("ready\n");
            fflush(stdout);
            echo(&load);
        } else if (strcmp(argv[i], "--to") == 0)
            to.sin_port = htons((uint16_t)number);
        else if (strcmp(argv[i], "--size") == 0)
            load.size = number;
        else if (strcmp(argv[i], "--count") == 0)
            load.count = number;
        else if (strcmp(argv[i], "--rate") == 0)
            load.rate = number;
        else if (strcmp(argv[i], "--burst") == 0)
            load.burst = number;
        else if (strcmp(argv[i], "--window") == 0)
            load.window = number;
        else if (strcmp(argv[i], "--prefix") == 0)
            parse_prefix(&load, argv[i + 1]);
        else
            return 2;
    }
    if (to.sin_port == 0 || load.size < 8 || load.size + load.prefix_len > ROOM ||
        load.burst == 0 || (load.rate == 0) == (load.window == 0)) {
        fprintf(stderr, "udp_load: see the top of its source\n");
        return 2;
    }
    load.fd = open_socket(0);
    start = now_ns();
    if (load.rate != 0)
        run_paced(&load, &to);
    else
        run_windowed(&load, &to);
    end = now_ns();
    while (load.received < load.sent && now_ns() < end + 2 * LOST_NS)
        wait_for(&load, end + 2 * LOST_NS);
    printf("{\"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"seconds\": %.6f}\n", load.sent,
           load.received, (double)(end - start) / 1e9);
    return 0;
}
