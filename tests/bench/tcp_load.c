/*
 * TCP loads for measurements, and the server that they need at the far end of a chain of relays.
 *
 *     tcp_load --serve PORT
 *     tcp_load --to PORT --load down|up|short --streams N --seconds S [--write BYTES]
 *
 * All on 127.0.0.1. "down": each stream reads as fast as it can; "up": each writes --write bytes at
 * a time, with TCP_NODELAY; "short": each connects, asks with 64 bytes, reads an answer of 512 and
 * the end, and begins anew. Prints one line of JSON: bytes, connections, seconds. A byte that is
 * missing or a connection that fails ends it with an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ASK_LEN     64
#define ANSWER_LEN  512
#define BLOCK_LEN   (128 * 1024)
#define EVENTS      256
#define STREAMS_MAX 20000

enum load { DOWN = 'd', UP = 'u', SHORT = 's' };

/* A connection, at either end. */
struct stream {
    int fd;
    char kind; /* 0: the server does not know it yet */
    unsigned asked, answered;
};

static uint8_t block[BLOCK_LEN];
static struct stream streams[STREAMS_MAX];
static int epoll;

static void fail(const char *what)
{
    fprintf(stderr, "tcp_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void allow_descriptors(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void watch(struct stream *stream, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.ptr = stream};

    if (epoll_ctl(epoll, how, stream->fd, &event) != 0)
        fail("epoll_ctl");
}

/* -- the far end -- */

static void drop(struct stream *stream)
{
    close(stream->fd);
    *stream = (struct stream){.fd = -1};
}

static void take_connections(int listening)
{
    int fd;

    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        int on = 1;

        if (fd >= STREAMS_MAX) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        streams[fd] = (struct stream){.fd = fd};
        watch(&streams[fd], EPOLLIN, EPOLL_CTL_ADD);
    }
}

static void serve_stream(struct stream *stream, uint32_t events)
{
    ssize_t count;

    if (events & EPOLLIN) {
        count = recv(stream->fd, block, sizeof block, 0);
        if (count == 0 || (count < 0 && errno != EAGAIN)) {
            drop(stream);
            return;
        }
        if (count > 0 && stream->kind == 0) {
            stream->kind = (char)block[0];
            if (stream->kind == DOWN)
                watch(stream, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
        }
        if (count > 0)
            stream->asked += (unsigned)count;
    }
    if (stream->kind == SHORT && stream->asked >= ASK_LEN) {
        if (send(stream->fd, block, ANSWER_LEN, MSG_NOSIGNAL) != ANSWER_LEN)
            fprintf(stderr, "tcp_load: an answer did not fit\n");
        drop(stream);
        return;
    }
    if (events & EPOLLOUT) {
        count = send(stream->fd, block, sizeof block, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN)
            drop(stream);
    }
}

static void serve(uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct stream listening = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
    int on = 1;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listening.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listening.fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        listen(listening.fd, 4096) != 0)
        fail("listen");
    watch(&listening, EPOLLIN, EPOLL_CTL_ADD);
    printf("listening at %u\n", port);
    fflush(stdout);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &listening)
                take_connections(listening.fd);
            else
                serve_stream(events[i].data.ptr, events[i].events);
        }
    }
}

/* -- the near end -- */

static struct sockaddr_in target;
static uint64_t bytes, connections;

static void begin(struct stream *stream, enum load load)
{
    int on = 1;

    stream->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (stream->fd < 0 || connect(stream->fd, (struct sockaddr *)&target, sizeof target) != 0)
        fail("connect");
    setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    stream->kind = (char)load;
    stream->answered = 0;
    memset(block, (char)load, ASK_LEN);
    if (send(stream->fd, block, ASK_LEN, MSG_NOSIGNAL) != ASK_LEN)
        fail("send");
    watch(stream, load == UP ? EPOLLOUT : EPOLLIN, EPOLL_CTL_ADD);
    connections++;
}

static void go_on(struct stream *stream, size_t write_len, bool may_begin)
{
    ssize_t count;

    if (stream->kind == UP) {
        count = send(stream->fd, block, write_len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN)
            fail("send");
        bytes += count > 0 ? (uint64_t)count : 0;
        return;
    }
    count = recv(stream->fd, block, sizeof block, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN)
        return;
    if (count < 0)
        fail("recv");
    bytes += (uint64_t)count;
    stream->answered += (unsigned)count;
    if (stream->kind == SHORT && count == 0) {
        if (stream->answered != ANSWER_LEN) {
            fprintf(stderr, "tcp_load: an answer of %u bytes\n", stream->answered);
            exit(1);
        }
        close(stream->fd);
        if (may_begin)
            begin(stream, SHORT);
    } else if (count == 0) {
        errno = ECONNRESET;
        fail("recv");
    }
}

int main(int argc, char **argv)
{
    const char *load = "down";
    size_t count = 1, write_len = BLOCK_LEN;
    double seconds = 2, start, end;

    allow_descriptors();
    epoll = epoll_create1(0);
    target = (struct sockaddr_in){.sin_family = AF_INET};
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--serve") == 0)
            serve((uint16_t)atoi(argv[i + 1]));
        else if (strcmp(argv[i], "--to") == 0)
            target.sin_port = htons((uint16_t)atoi(argv[i + 1]));
        else if (strcmp(argv[i], "--load") == 0)
            load = argv[i + 1];
        else if (strcmp(argv[i], "--streams") == 0)
            count = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--write") == 0)
            write_len = strtoul(argv[i + 1], NULL, 10);
        else
            return 2;
    }
    if (target.sin_port == 0 || count == 0 || count > STREAMS_MAX || write_len == 0 ||
        write_len > BLOCK_LEN || strchr("dus", load[0]) == NULL) {
        fprintf(stderr, "tcp_load: see the top of its source\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++)
        begin(&streams[i], (enum load)load[0]);
    start = now_s();
    bytes = 0;
    connections = 0;
    for (end = start; end - start < seconds; end = now_s()) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, 100);

        for (int i = 0; i < ready; i++)
            go_on(events[i].data.ptr, write_len, true);
    }
    printf("{\"bytes\": %" PRIu64 ", \"connections\": %" PRIu64 ", \"seconds\": %.6f}\n", bytes,
           connections, end - start);
    return 0;
}
