/*
 * What the integration tests stand on: an engine in a thread of its own, targets in threads, and
 * blocking sockets with time limits for the test itself. Every call fails the test on an error.
 */
#ifndef SS_TESTS_INTEGRATION_RIG_H
#define SS_TESTS_INTEGRATION_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/engine.h"

/* The method of all engines, "aes-256-gcm" unless a test's main changes it. */
extern const char *rig_method;
bool rig_method_is_2022(void);

/* Engines are made with these options; tests change what they are about. */
struct rig_options {
    struct ss_engine_options engine;
    const char *method;
    const char *password;       /* NULL: one that fits the method */
    struct ss_limiter *limiter; /* of the server's port; NULL: none */
    bool udp;                   /* a UDP port beside the listener, with the same number */
    struct ss_users *users;     /* of a server; NULL: none */
};
struct rig_options rig_defaults(void);

/* An engine with one listener on a free port of 127.0.0.1, running in a thread. */
struct rig_engine {
    struct ss_engine *engine;
    struct ss_listener *listener;
    struct ss_profile *profile;
    struct ss_salt_memory *salts;
    struct ss_salt_pool *salt_pool;
    struct ss_upstream upstream;
    struct ss_target target;
    struct ss_udp_port *udp_port; /* NULL without */
    pthread_t thread;
    uv_async_t stop, call;
    uv_sem_t called;
    void (*function)(struct rig_engine *rig, void *argument);
    _Atomic(void *) argument; /* written last, read first: libuv's own order is not seen by all */
    uint16_t port;
};
void rig_server_start(struct rig_engine *rig, const struct rig_options *options);
void rig_local_start(struct rig_engine *rig, const struct rig_options *options,
                     uint16_t server_port);
void rig_tunnel_start(struct rig_engine *rig, const struct rig_options *options,
                      uint16_t server_port, uint16_t target_port);
/* Calls a function in the thread of loop 0, and waits for its return. */
void rig_call(struct rig_engine *rig, void (*function)(struct rig_engine *rig, void *argument),
              void *argument);
/* Stops, joins and frees; checks that as many sessions were closed as opened. */
void rig_stop(struct rig_engine *rig);

/* A target: one thread, one connection after the other, each given to `serve`. */
typedef void rig_serve_fn(int fd);
struct rig_target {
    pthread_t thread;
    rig_serve_fn *serve;
    int listening;
    uint16_t port;
};
void rig_target_start(struct rig_target *target, rig_serve_fn *serve);
void rig_target_stop(struct rig_target *target);
/*
 * A port of 127.0.0.1 that is free for TCP and UDP and stays so until this process ends: it lies
 * below those that the kernel gives to connections, and is claimed as tests/support/ports.py does.
 */
uint16_t rig_free_port(void);
/* Sends back what comes until FIN, then FIN. */
void rig_serve_echo(int fd);

/* Blocking sockets; each waits 20 s at most. */
int rig_connect(uint16_t port);
void rig_send(int fd, const void *bytes, size_t len);
/* Reads exactly `len` bytes. */
void rig_receive(int fd, void *bytes, size_t len);
/* 0 at FIN, -1 at RST; fails when bytes come. */
int rig_receive_end(int fd);
/* Whether nothing comes, no end either, for this long. */
bool rig_is_silent(int fd, int for_ms);
/* SOCKS5 handshake and request for 127.0.0.1:port; leaves the connection ready for payload. */
int rig_socks_connect(uint16_t local_port, uint16_t target_port);

/* UDP sockets on 127.0.0.1, which wait 20 s at most. */
int rig_udp_open(uint16_t *port);
void rig_udp_send(int fd, uint16_t port, const void *bytes, size_t len);
/* Returns the length; *from (may be NULL) is the sender's port. */
size_t rig_udp_receive(int fd, void *bytes, size_t cap, uint16_t *from);
/* Sends back what comes, until it is stopped. */
struct rig_udp_echo {
    pthread_t thread;
    int fd;
    uint16_t port;
    _Atomic uint16_t last_from; /* whom the latest datagram came from */
};
void rig_udp_echo_start(struct rig_udp_echo *echo);
void rig_udp_echo_stop(struct rig_udp_echo *echo);
/* UDP ASSOCIATE on a connection of its own; returns the connection, *port is where to send to. */
int rig_socks_associate(uint16_t local_port, uint16_t *port);

/* Waits until the condition holds, 20 s at most; fails otherwise. */
#define rig_wait_until(condition)                                    \
    do {                                                             \
        uint64_t rig_deadline = uv_hrtime() + UINT64_C(20000000000); \
        while (!(condition)) {                                       \
            assert_true(uv_hrtime() < rig_deadline);                 \
            rig_pause();                                             \
        }                                                            \
    } while (0)
void rig_pause(void);

/* For main: takes the number of workers and the method from the command line, and starts the
 * libraries. False when they can't be. */
bool rig_begin(int argc, char **argv, unsigned *workers);
/* Ends them; returns `failed`. */
int rig_end(int failed);

#endif
