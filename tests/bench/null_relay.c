/*
 * A plain TCP relay on libuv: what the suite's programs are measured against.
 *
 *     null_relay --listen PORT [--bind ADDRESS] --target HOST:PORT [--aead METHOD] [--read BYTES]
 *
 * It reads into one scratch, writes at once, and queues only what the kernel did not take. With
 * --aead it also runs the cipher over the bytes as a Shadowsocks program would, a length and a
 * payload chunk for each 16,383 bytes, and throws the result away: the cost model.
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "codec/method.h"
#include "crypto/aead.h"

#define CHUNK_MAX 16383

/* One direction. */
struct flow {
    uv_tcp_t *source, *sink;
    struct session *session;
    uv_write_t write;
    uv_shutdown_t shutdown;
    char *rest; /* what the kernel did not take; NULL when nothing waits */
    bool ended;
};

struct session {
    uv_tcp_t client, target;
    uv_connect_t connect;
    struct flow up, down;
    int open_handles, ended_flows;
    bool closing;
};

static struct {
    uv_loop_t *loop;
    uv_tcp_t listener;
    struct sockaddr_in target;
    size_t read_size;
    char *scratch;
    const struct ss_aead *aead;
    void *context;
    uint8_t *sealed;
    uint8_t nonce[SS_AEAD_NONCE_MAX];
} relay;

static void must(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "null_relay: %s: %s\n", what, uv_strerror(status));
        exit(1);
    }
}

static void count_up(uint8_t *nonce)
{
    for (size_t i = 0; i < SS_AEAD_NONCE_MAX && ++nonce[i] == 0; i++)
        continue;
}

/* The cipher's share of relaying these bytes. */
static void pay_for(const char *bytes, size_t len)
{
    uint8_t length[2 + SS_AEAD_TAG_LEN];

    while (len > 0) {
        size_t chunk = len < CHUNK_MAX ? len : CHUNK_MAX;
        uint8_t plain[2] = {(uint8_t)(chunk >> 8), (uint8_t)chunk};

        if (relay.aead->seal(relay.context, relay.nonce, plain, 2, length) != SS_OK)
            abort();
        count_up(relay.nonce);
        if (relay.aead->seal(relay.context, relay.nonce, (const uint8_t *)bytes, chunk,
                             relay.sealed) != SS_OK)
            abort();
        count_up(relay.nonce);
        bytes += chunk;
        len -= chunk;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct session *session = handle->data;

    if (--session->open_handles > 0)
        return;
    free(session->up.rest);
    free(session->down.rest);
    free(session);
}

static void session_close(struct session *session)
{
    if (session->closing)
        return;
    session->closing = true;
    uv_close((uv_handle_t *)&session->client, on_closed);
    uv_close((uv_handle_t *)&session->target, on_closed);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    struct flow *flow = request->data;

    if (status < 0 || ++flow->session->ended_flows == 2)
        session_close(flow->session);
}

static void flow_end(struct flow *flow)
{
    flow->shutdown.data = flow;
    if (uv_shutdown(&flow->shutdown, (uv_stream_t *)flow->sink, on_shut) < 0)
        session_close(flow->session);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(relay.scratch, (unsigned)relay.read_size);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf);

static void on_written(uv_write_t *request, int status)
{
    struct flow *flow = request->data;

    free(flow->rest);
    flow->rest = NULL;
    if (status < 0)
        session_close(flow->session);
    else if (!flow->session->closing)
        uv_read_start((uv_stream_t *)flow->source, on_room, on_read);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct session *session = stream->data;
    struct flow *flow = stream == (uv_stream_t *)&session->client ? &session->up : &session->down;
    uv_buf_t out;
    int taken;

    if (len == 0)
        return;
    if (len == UV_EOF) {
        uv_read_stop(stream);
        flow_end(flow);
        return;
    }
    if (len < 0) {
        session_close(session);
        return;
    }
    if (relay.aead != NULL)
        pay_for(buf->base, (size_t)len);

    out = uv_buf_init(buf->base, (unsigned)len);
    taken = uv_try_write((uv_stream_t *)flow->sink, &out, 1);
    if (taken == UV_EAGAIN)
        taken = 0;
    if (taken < 0) {
        session_close(session);
        return;
    }
    if (taken == len)
        return;

    uv_read_stop(stream);
    flow->rest = malloc((size_t)(len - taken));
    if (flow->rest == NULL)
        abort();
    memcpy(flow->rest, buf->base + taken, (size_t)(len - taken));
    out = uv_buf_init(flow->rest, (unsigned)(len - taken));
    flow->write.data = flow;
    if (uv_write(&flow->write, (uv_stream_t *)flow->sink, &out, 1, on_written) < 0)
        session_close(session);
}

static void on_connected(uv_connect_t *request, int status)
{
    struct session *session = request->data;

    if (status < 0) {
        session_close(session);
        return;
    }
    uv_read_start((uv_stream_t *)&session->client, on_room, on_read);
    uv_read_start((uv_stream_t *)&session->target, on_room, on_read);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct session *session;

    (void)listener;
    if (status < 0)
        return;
    session = calloc(1, sizeof *session);
    if (session == NULL)
        abort();
    must(uv_tcp_init(relay.loop, &session->client), "socket");
    must(uv_tcp_init(relay.loop, &session->target), "socket");
    session->client.data = session->target.data = session->connect.data = session;
    session->up = (struct flow){&session->client, &session->target, session, .rest = NULL};
    session->down = (struct flow){&session->target, &session->client, session, .rest = NULL};
    session->open_handles = 2;

    must(uv_accept((uv_stream_t *)&relay.listener, (uv_stream_t *)&session->client), "accept");
    uv_tcp_nodelay(&session->client, 1);
    uv_tcp_nodelay(&session->target, 1);
    if (uv_tcp_connect(&session->connect, &session->target, (const struct sockaddr *)&relay.target,
                       on_connected) < 0)
        session_close(session);
}

static void use_cipher(const char *name)
{
    static const uint8_t key[SS_AEAD_KEY_MAX] = {7};
    const struct ss_method *method = ss_method_find(name);

    relay.aead = method == NULL ? NULL : ss_aead_best(method->aead);
    if (relay.aead == NULL) {
        fprintf(stderr, "null_relay: no provider for %s\n", name);
        exit(1);
    }
    relay.context = aligned_alloc(SS_AEAD_CONTEXT_ALIGN, relay.aead->context_size);
    relay.sealed = malloc(CHUNK_MAX + SS_AEAD_TAG_LEN);
    if (relay.context == NULL || relay.sealed == NULL)
        abort();
    memset(relay.context, 0, relay.aead->context_size);
    if (relay.aead->init(relay.context) != SS_OK ||
        relay.aead->set_key(relay.context, key) != SS_OK) {
        fprintf(stderr, "null_relay: %s does not start\n", relay.aead->provider_name);
        exit(1);
    }
}

static int usage(void)
{
    fprintf(stderr, "null_relay --listen PORT [--bind ADDRESS] --target HOST:PORT [--aead METHOD] "
                    "[--read BYTES]\n");
    return 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'}, {"bind", required_argument, NULL, 'b'},
        {"target", required_argument, NULL, 't'}, {"aead", required_argument, NULL, 'a'},
        {"read", required_argument, NULL, 'r'},   {NULL, 0, NULL, 0},
    };
    struct sockaddr_in address;
    const char *cipher = NULL, *host = "127.0.0.1";
    char *colon = NULL;
    int port = 0, option;

    relay.read_size = 256 * 1024;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'l':
            port = atoi(optarg);
            break;
        case 'b':
            host = optarg;
            break;
        case 't':
            colon = strrchr(optarg, ':');
            if (colon == NULL)
                return usage();
            *colon = '\0';
            must(uv_ip4_addr(optarg, atoi(colon + 1), &relay.target), "--target");
            break;
        case 'a':
            cipher = optarg;
            break;
        case 'r':
            relay.read_size = strtoul(optarg, NULL, 10);
            break;
        default:
            return usage();
        }
    }
    if (port == 0 || colon == NULL || relay.read_size == 0)
        return usage();
    if (cipher != NULL)
        use_cipher(cipher);

    signal(SIGPIPE, SIG_IGN);
    relay.loop = uv_default_loop();
    relay.scratch = malloc(relay.read_size);
    if (relay.scratch == NULL)
        abort();
    must(uv_ip4_addr(host, port, &address), "--listen");
    must(uv_tcp_init(relay.loop, &relay.listener), "socket");
    must(uv_tcp_bind(&relay.listener, (const struct sockaddr *)&address, 0), "bind");
    must(uv_listen((uv_stream_t *)&relay.listener, 1024, on_connection), "listen");
    printf("listening at %s:%d%s%s\n", host, port, relay.aead != NULL ? ", sealing with " : "",
           relay.aead != NULL ? relay.aead->provider_name : "");
    fflush(stdout);
    return uv_run(relay.loop, UV_RUN_DEFAULT);
}
