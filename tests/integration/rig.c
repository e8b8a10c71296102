/* Engines, targets and sockets for the integration tests. */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/codec.h"
#include "codec/packet.h"
#include "crypto/random.h"
#include "resolver/resolver.h"

#define LIMIT_S 20

const char *rig_method = "aes-256-gcm";

bool rig_method_is_2022(void)
{
    return ss_method_find(rig_method)->family == SS_METHODS_2022;
}

/* A key in base64 is as good a password as any where keys are not asked for. */
static const char *password_of(const struct rig_options *options)
{
    if (options->password != NULL)
        return options->password;
    return ss_method_find(options->method)->key_len == 16
               ? "AAECAwQFBgcICQoLDA0ODw=="
               : "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
}

struct rig_options rig_defaults(void)
{
    return (struct rig_options){
        .engine = {.workers = 1,
                   .max_connections = 1024,
                   .descriptors = 4096,
                   .handshake_timeout_ms = 60000,
                   .connect_timeout_ms = 10000,
                   .keep_alive_s = 40,
                   .tcp_idle_timeout_ms = 86400000,
                   .half_open_timeout_ms = 300000,
                   .max_associations = 256,
                   .udp_timeout_ms = 60000},
        .method = rig_method,
    };
}

static void on_stop(uv_async_t *async)
{
    struct rig_engine *rig = async->data;

    uv_close((uv_handle_t *)async, NULL);
    uv_close((uv_handle_t *)&rig->call, NULL);
    ss_engine_stop(rig->engine);
}

static void on_call(uv_async_t *async)
{
    struct rig_engine *rig = async->data;
    void *argument = atomic_load_explicit(&rig->argument, memory_order_acquire);

    rig->function(rig, argument);
    uv_sem_post(&rig->called);
}

void rig_call(struct rig_engine *rig, void (*function)(struct rig_engine *rig, void *argument),
              void *argument)
{
    rig->function = function;
    atomic_store_explicit(&rig->argument, argument, memory_order_release);
    uv_async_send(&rig->call);
    uv_sem_wait(&rig->called);
}

static void *run(void *argument)
{
    struct rig_engine *rig = argument;

    ss_engine_run(rig->engine);
    return NULL;
}

/* False when the number that the system chose for TCP is taken for UDP. */
static bool listen_on_a_port(struct rig_engine *rig, const struct rig_options *options,
                             struct ss_listener_options *listener)
{
    enum ss_status status;

    listener->address.port = 0;
    assert_int_equal(ss_engine_listen(rig->engine, listener, &rig->listener, NULL), SS_OK);
    rig->port = listener->address.port = ss_listener_address(rig->listener).port;
    if (!options->udp)
        return true;
    status = ss_engine_listen_udp(rig->engine, listener, &rig->udp_port, NULL);
    if (status == SS_OK)
        return true;
    assert_int_equal(status, SS_ERR_IN_USE);
    ss_engine_unlisten(rig->engine, rig->listener);
    return false;
}

static void start(struct rig_engine *rig, const struct rig_options *options,
                  struct ss_role_options *role)
{
    struct ss_listener_options listener = {.backlog = 128};
    struct ss_engine_options engine = options->engine;
    const char *password = password_of(options);
    struct ss_profile_options profile = {
        .method = ss_method_find(options->method),
        .password = {.ptr = (const uint8_t *)password, .len = strlen(password)}};

    rig->salts = ss_salt_memory_new(10000);
    assert_non_null(rig->salts);
    profile.salts = rig->salts;
    rig->salt_pool = ss_salt_pool_new(10000);
    assert_non_null(rig->salt_pool);
    profile.salt_pool = rig->salt_pool;
    profile.users = options->users;
    assert_int_equal(ss_profile_new(&rig->profile, &profile), SS_OK);
    engine.codec_size = ss_codec_size_max();
    engine.packet_link_size = ss_packet_link_size_max();
    engine.udp_at_start = options->udp;
    assert_int_equal(ss_engine_new(&rig->engine, &engine), SS_OK);
    if (role->ingress == SS_INGRESS_SHADOWSOCKS)
        role->profile = rig->profile;
    rig->upstream.profile = rig->profile;
    assert_int_equal(ss_role_new(&listener.role, role), SS_OK);
    listener.address = (struct ss_addr){.ip = {.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}}};
    while (!listen_on_a_port(rig, options, &listener))
        ;
    ss_role_release(listener.role);
    assert_int_equal(uv_async_init(ss_engine_loop(rig->engine), &rig->stop, on_stop), 0);
    rig->stop.data = rig;
    assert_int_equal(uv_async_init(ss_engine_loop(rig->engine), &rig->call, on_call), 0);
    rig->call.data = rig;
    assert_int_equal(uv_sem_init(&rig->called, 0), 0);
    assert_int_equal(ss_engine_start_workers(rig->engine), SS_OK);
    signal(SIGPIPE, SIG_IGN); /* as programs have it: what is written to the gone is an error */
    assert_int_equal(pthread_create(&rig->thread, NULL, run, rig), 0);
}

void rig_server_start(struct rig_engine *rig, const struct rig_options *options)
{
    struct ss_role_options role = {
        .ingress = SS_INGRESS_SHADOWSOCKS, .egress = SS_EGRESS_DIRECT, .limiter = options->limiter};

    start(rig, options, &role);
}

static void set_upstream(struct rig_engine *rig, struct ss_role_options *role, uint16_t port)
{
    rig->upstream = (struct ss_upstream){.endpoint = {.host = "127.0.0.1", .port = port}};
    role->egress = SS_EGRESS_UPSTREAM;
    role->upstreams = &rig->upstream;
    role->upstream_count = 1;
}

void rig_local_start(struct rig_engine *rig, const struct rig_options *options,
                     uint16_t server_port)
{
    struct ss_role_options role = {.ingress = SS_INGRESS_SOCKS5};

    set_upstream(rig, &role, server_port);
    start(rig, options, &role);
}

void rig_tunnel_start(struct rig_engine *rig, const struct rig_options *options,
                      uint16_t server_port, uint16_t target_port)
{
    struct ss_role_options role = {.ingress = SS_INGRESS_FIXED};

    assert_int_equal(ss_target_from_host(&rig->target, "127.0.0.1", target_port), SS_OK);
    role.fixed_target = &rig->target;
    set_upstream(rig, &role, server_port);
    start(rig, options, &role);
}

void rig_stop(struct rig_engine *rig)
{
    struct ss_traffic traffic;

    uv_async_send(&rig->stop);
    assert_int_equal(pthread_join(rig->thread, NULL), 0);
    ss_engine_traffic(rig->engine, &traffic);
    assert_int_equal(traffic.sessions_opened, traffic.sessions_closed);
    assert_int_equal(traffic.associations_opened, traffic.associations_closed);
    assert_int_equal(ss_engine_sessions(rig->engine), 0);
    ss_engine_free(rig->engine);
    uv_sem_destroy(&rig->called);
    ss_profile_release(rig->profile);
    ss_salt_memory_free(rig->salts);
    ss_salt_pool_free(rig->salt_pool);
}

static void *serve(void *argument)
{
    struct rig_target *target = argument;
    int fd;

    while ((fd = accept(target->listening, NULL, NULL)) >= 0) {
        target->serve(fd);
        close(fd);
    }
    return NULL;
}

static int bind_loopback(uint16_t *port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    *port = ntohs(addr.sin_port);
    return fd;
}

void rig_target_start(struct rig_target *target, rig_serve_fn *serve_fn)
{
    target->serve = serve_fn;
    target->listening = bind_loopback(&target->port);
    assert_int_equal(listen(target->listening, 128), 0);
    assert_int_equal(pthread_create(&target->thread, NULL, serve, target), 0);
}

static bool is_free(uint16_t port, int kind)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, kind, 0);
    bool bound = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    return bound;
}

uint16_t rig_free_port(void)
{
    for (;;) {
        struct sockaddr_un claim = {.sun_family = AF_UNIX};
        int held = socket(AF_UNIX, SOCK_DGRAM, 0), len;
        uint16_t port;

        assert_true(held >= 0);
        port = (uint16_t)(10000 + ss_random_below(22000));
        len = snprintf(claim.sun_path + 1, sizeof claim.sun_path - 1, "ss-test-port-%u", port);
        if (bind(held, (struct sockaddr *)&claim,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0 &&
            is_free(port, SOCK_STREAM) && is_free(port, SOCK_DGRAM))
            return port;
        close(held);
    }
}

void rig_target_stop(struct rig_target *target)
{
    shutdown(target->listening, SHUT_RDWR);
    pthread_join(target->thread, NULL);
    close(target->listening);
}

void rig_serve_echo(int fd)
{
    char bytes[65536];
    ssize_t got;

    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        for (ssize_t sent = 0; sent < got;) {
            ssize_t part = send(fd, bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);

            if (part < 0)
                return;
            sent += part;
        }
    }
}

int rig_connect(uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = LIMIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    return fd;
}

void rig_send(int fd, const void *bytes, size_t len)
{
    const char *next = bytes;

    while (len != 0) {
        ssize_t sent = send(fd, next, len, MSG_NOSIGNAL);

        assert_true(sent > 0);
        next += sent;
        len -= (size_t)sent;
    }
}

void rig_receive(int fd, void *bytes, size_t len)
{
    char *next = bytes;

    while (len != 0) {
        ssize_t got = recv(fd, next, len, 0);

        assert_true(got > 0);
        next += got;
        len -= (size_t)got;
    }
}

int rig_receive_end(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, 0);

    assert_true(got <= 0);
    if (got < 0)
        assert_int_equal(errno, ECONNRESET);
    return (int)got;
}

bool rig_is_silent(int fd, int for_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN | POLLRDHUP};

    return poll(&wait, 1, for_ms) == 0;
}

int rig_socks_connect(uint16_t local_port, uint16_t target_port)
{
    const uint8_t request[] = {
        5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, (uint8_t)(target_port >> 8), (uint8_t)target_port};
    const uint8_t expected[] = {5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    uint8_t reply[sizeof expected];
    int fd = rig_connect(local_port);

    rig_send(fd, request, sizeof request);
    rig_receive(fd, reply, sizeof reply);
    assert_memory_equal(reply, expected, sizeof expected);
    return fd;
}

int rig_udp_open(uint16_t *port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    const struct timeval limit = {.tv_sec = LIMIT_S};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    *port = ntohs(addr.sin_port);
    return fd;
}

void rig_udp_send(int fd, uint16_t port, const void *bytes, size_t len)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_int_equal(sendto(fd, bytes, len, 0, (struct sockaddr *)&addr, sizeof addr), len);
}

size_t rig_udp_receive(int fd, void *bytes, size_t cap, uint16_t *from)
{
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    ssize_t got = recvfrom(fd, bytes, cap, 0, (struct sockaddr *)&addr, &len);

    assert_true(got >= 0);
    if (from != NULL)
        *from = ntohs(addr.sin_port);
    return (size_t)got;
}

static void *udp_echo(void *argument)
{
    struct rig_udp_echo *echo = argument;
    char *bytes = malloc(65536);
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    ssize_t got;

    while ((got = recvfrom(echo->fd, bytes, 65536, 0, (struct sockaddr *)&addr, &len)) >= 0) {
        if (ntohs(addr.sin_port) == echo->port)
            break; /* our own: the sign to stop */
        atomic_store(&echo->last_from, ntohs(addr.sin_port));
        sendto(echo->fd, bytes, (size_t)got, 0, (struct sockaddr *)&addr, len);
    }
    free(bytes);
    return NULL;
}

void rig_udp_echo_start(struct rig_udp_echo *echo)
{
    const struct timeval forever = {0};

    echo->fd = rig_udp_open(&echo->port);
    setsockopt(echo->fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
    assert_int_equal(pthread_create(&echo->thread, NULL, udp_echo, echo), 0);
}

void rig_udp_echo_stop(struct rig_udp_echo *echo)
{
    rig_udp_send(echo->fd, echo->port, "", 0);
    pthread_join(echo->thread, NULL);
    close(echo->fd);
}

int rig_socks_associate(uint16_t local_port, uint16_t *port)
{
    const uint8_t request[] = {5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0};
    const uint8_t expected[] = {5, 0, 5, 0, 0, 1, 127, 0, 0, 1};
    uint8_t reply[12];
    int fd = rig_connect(local_port);

    rig_send(fd, request, sizeof request);
    rig_receive(fd, reply, sizeof reply);
    assert_memory_equal(reply, expected, sizeof expected);
    *port = (uint16_t)(reply[10] << 8 | reply[11]);
    return fd;
}

void rig_pause(void)
{
    usleep(2000);
}

bool rig_begin(int argc, char **argv, unsigned *workers)
{
    if (argc > 1)
        *workers = (unsigned)atoi(argv[1]);
    if (argc > 2)
        rig_method = argv[2];
    return ss_random_start() == SS_OK && ss_resolver_global_start() == SS_OK;
}

int rig_end(int failed)
{
    ss_resolver_global_end();
    return failed;
}
