/* Roles, ports and users that change while sessions are open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "rig.h"

static unsigned workers = 1;

#define KEY_16_A "AAECAwQFBgcICQoLDA0ODw=="
#define KEY_16_B "ERECAwQFBgcICQoLDA0ODw=="
#define KEY_16_C "ISECAwQFBgcICQoLDA0ODw=="
#define KEY_32_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_32_B "ERECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_32_C "ISECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

/* Keys a, b and c. */
static const char *key(char which)
{
    static const char *const keys[2][3] = {{KEY_16_A, KEY_16_B, KEY_16_C},
                                           {KEY_32_A, KEY_32_B, KEY_32_C}};

    return keys[ss_method_find(rig_method)->key_len != 16][which - 'a'];
}

/* Two clients of one server, with the same key at first, and a target for each. */
struct chain {
    struct rig_engine server, local, other;
    struct rig_target target, second;
    struct rig_udp_echo echo;
    struct rig_options options;
};

static void chain_start(struct chain *chain)
{
    chain->options = rig_defaults();
    chain->options.engine.workers = workers;
    chain->options.udp = true;
    chain->options.password = key('a');
    rig_target_start(&chain->target, rig_serve_echo);
    rig_target_start(&chain->second, rig_serve_echo);
    rig_udp_echo_start(&chain->echo);
    rig_server_start(&chain->server, &chain->options);
    rig_local_start(&chain->local, &chain->options, chain->server.port);
    chain->options.password = key('b');
    rig_local_start(&chain->other, &chain->options, chain->server.port);
}

static void chain_stop(struct chain *chain)
{
    rig_stop(&chain->other);
    rig_stop(&chain->local);
    rig_stop(&chain->server);
    rig_udp_echo_stop(&chain->echo);
    rig_target_stop(&chain->target);
    rig_target_stop(&chain->second);
}

static void echo(int fd)
{
    char bytes[] = "to and fro";

    rig_send(fd, bytes, sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    rig_receive(fd, bytes, sizeof bytes);
    assert_string_equal(bytes, "to and fro");
}

static void end(int fd)
{
    shutdown(fd, SHUT_WR);
    assert_int_equal(rig_receive_end(fd), 0);
    close(fd);
}

/* A datagram through an ASSOCIATE's port; whether an answer comes. */
static void send_datagram(int fd, uint16_t port, const struct chain *chain)
{
    const uint8_t bytes[] = {
        0, 0, 0, 1, 127, 0, 0, 1, (uint8_t)(chain->echo.port >> 8), (uint8_t)chain->echo.port, 'x'};

    rig_udp_send(fd, port, bytes, sizeof bytes);
}

static void echo_datagram(int fd, uint16_t port, const struct chain *chain)
{
    uint8_t bytes[64];

    send_datagram(fd, port, chain);
    assert_int_equal(rig_udp_receive(fd, bytes, sizeof bytes, NULL), 11);
}

/* What the server is to do from now on, under this key. */
static struct ss_profile *profile_with(const struct rig_engine *rig, const char *password)
{
    const struct ss_profile_options options = {
        .method = ss_method_find(rig_method),
        .password = {(const uint8_t *)password, strlen(password)},
        .salts = rig->salts,
        .salt_pool = rig->salt_pool};
    struct ss_profile *profile;

    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    return profile;
}

struct change {
    struct ss_profile *profile;
    bool end_old;        /* sessions of the key before */
    atomic_int released; /* roles that were let go */
};

static void count_release(void *owner)
{
    atomic_fetch_add(&((struct change *)owner)->released, 1);
}

static void give_role(struct rig_engine *rig, void *argument)
{
    struct change *change = argument;
    const struct ss_role_options options = {.ingress = SS_INGRESS_SHADOWSOCKS,
                                            .egress = SS_EGRESS_DIRECT,
                                            .profile = change->profile,
                                            .released = count_release,
                                            .owner = change};
    const struct ss_sessions_of old = {.listener = rig->listener, .profile = rig->profile};
    struct ss_role *role;

    assert_int_equal(ss_role_new(&role, &options), SS_OK);
    assert_int_equal(ss_listener_set_role(rig->listener, role), SS_OK);
    assert_int_equal(ss_udp_port_set_role(rig->udp_port, role), SS_OK);
    ss_role_release(role);
    if (change->end_old)
        assert_int_equal(ss_engine_end_sessions(rig->engine, &old), SS_OK);
}

static void read_traffic(struct rig_engine *rig, void *argument)
{
    ss_engine_traffic(rig->engine, argument);
}

static uint64_t associations_closed(struct rig_engine *rig)
{
    struct ss_traffic traffic;

    rig_call(rig, read_traffic, &traffic);
    return traffic.associations_closed;
}

static void sessions_keep_the_role_that_they_began_with(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct change change = {0};
    int old, new;
    (void)state;

    chain_start(chain);
    old = rig_socks_connect(chain->local.port, chain->target.port);
    echo(old);
    change.profile = profile_with(&chain->server, key('b'));
    rig_call(&chain->server, give_role, &change);
    echo(old);
    new = rig_socks_connect(chain->other.port, chain->second.port);
    echo(new);
    echo(old);
    end(old);
    /* The key before is nobody's any more. */
    old = rig_socks_connect(chain->local.port, chain->target.port);
    rig_send(old, "x", 1);
    if (rig_method_is_2022())
        assert_int_equal(rig_receive_end(old), -1);
    else
        assert_true(rig_is_silent(old, 200));
    close(old);
    echo(new);
    end(new);
    chain_stop(chain);
    assert_int_equal(atomic_load(&change.released), 1);
    ss_profile_release(change.profile);
    free(chain);
}

static void sessions_of_an_old_key_end_when_asked(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct change change = {.end_old = true};
    int old[8], new, waiting;
    (void)state;

    chain_start(chain);
    old[0] = rig_socks_connect(chain->local.port, chain->target.port);
    echo(old[0]);
    /* Some without a target that answers, so in every phase, and on every worker. */
    for (int i = 1; i < 8; i++) {
        old[i] = rig_socks_connect(chain->local.port, chain->target.port);
        rig_send(old[i], "x", 1);
    }
    waiting = rig_connect(chain->server.port);
    rig_wait_until(ss_engine_sessions(chain->server.engine) == 9);
    change.profile = profile_with(&chain->server, key('b'));
    rig_call(&chain->server, give_role, &change);
    rig_wait_until(ss_engine_sessions(chain->server.engine) == 0);
    for (int i = 0; i < 8; i++) {
        (void)rig_receive_end(old[i]);
        close(old[i]);
    }
    close(waiting);
    new = rig_socks_connect(chain->other.port, chain->second.port);
    echo(new);
    /* Not those of the key that is in force. */
    rig_call(&chain->server, give_role, &change);
    echo(new);
    end(new);
    chain_stop(chain);
    assert_int_equal(atomic_load(&change.released), 2);
    ss_profile_release(change.profile);
    free(chain);
}

static void associations_stay_with_their_key(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct change change = {0};
    uint16_t own, port, from;
    int fd = rig_udp_open(&own), control;
    (void)state;

    chain_start(chain);
    control = rig_socks_associate(chain->local.port, &port);
    echo_datagram(fd, port, chain);
    from = atomic_load(&chain->echo.last_from);
    change.profile = chain->server.profile;
    rig_call(&chain->server, give_role, &change);
    echo_datagram(fd, port, chain);
    assert_int_equal(atomic_load(&chain->echo.last_from), from);
    assert_int_equal(associations_closed(&chain->server), 0);
    change.profile = profile_with(&chain->server, key('b'));
    rig_call(&chain->server, give_role, &change);
    assert_int_equal(associations_closed(&chain->server), 1);
    send_datagram(fd, port, chain);
    assert_true(rig_is_silent(fd, 200));
    close(control);
    control = rig_socks_associate(chain->other.port, &port);
    echo_datagram(fd, port, chain);
    close(control);
    close(fd);
    chain_stop(chain);
    assert_int_equal(atomic_load(&change.released), 2);
    ss_profile_release(change.profile);
    free(chain);
}

static void close_ports(struct rig_engine *rig, void *argument)
{
    (void)argument;
    ss_engine_unlisten(rig->engine, rig->listener);
    ss_engine_unlisten_udp(rig->engine, rig->udp_port);
}

/* Which ports are to be opened, at the number that they had. */
struct opening {
    bool tcp, udp;
    struct ss_role_options role;
};

static void open_ports(struct rig_engine *rig, void *argument)
{
    const struct opening *opening = argument;
    struct ss_listener_options options = {
        .backlog = 128,
        .address = {.ip = {.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}}, .port = rig->port}};

    assert_int_equal(ss_role_new(&options.role, &opening->role), SS_OK);
    if (opening->tcp)
        assert_int_equal(ss_engine_listen(rig->engine, &options, &rig->listener, NULL), SS_OK);
    if (opening->udp)
        assert_int_equal(ss_engine_listen_udp(rig->engine, &options, &rig->udp_port, NULL), SS_OK);
    ss_role_release(options.role);
}

static struct opening opening_of_server(const struct rig_engine *rig)
{
    return (struct opening){.tcp = true,
                            .udp = true,
                            .role = {.ingress = SS_INGRESS_SHADOWSOCKS,
                                     .egress = SS_EGRESS_DIRECT,
                                     .profile = rig->profile}};
}

static struct opening opening_of_udp(const struct rig_engine *rig)
{
    return (struct opening){.udp = true,
                            .role = {.ingress = SS_INGRESS_SOCKS5,
                                     .egress = SS_EGRESS_UPSTREAM,
                                     .upstreams = &rig->upstream,
                                     .upstream_count = 1}};
}

static void a_closed_port_leaves_its_sessions(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct ss_traffic traffic;
    struct opening opening;
    uint16_t own, port;
    int fd = rig_udp_open(&own), control, old;
    char byte = 'x';
    (void)state;

    chain_start(chain);
    old = rig_socks_connect(chain->local.port, chain->target.port);
    echo(old);
    control = rig_socks_associate(chain->local.port, &port);
    echo_datagram(fd, port, chain);
    rig_call(&chain->server, close_ports, NULL);
    echo(old);
    assert_int_equal(associations_closed(&chain->server), 1);
    send_datagram(fd, port, chain);
    assert_true(rig_is_silent(fd, 100));
    {
        int refused = rig_socks_connect(chain->local.port, chain->second.port);

        rig_send(refused, &byte, 1);
        (void)rig_receive_end(refused);
        close(refused);
    }
    /* Opened anew beside what is left of it, and closed with nothing left. */
    opening = opening_of_server(&chain->server);
    rig_call(&chain->server, open_ports, &opening);
    for (int i = 0; i < 50; i++) {
        rig_call(&chain->server, close_ports, NULL);
        rig_call(&chain->server, open_ports, &opening);
    }
    echo_datagram(fd, port, chain);
    echo(old);
    end(old);
    rig_wait_until(ss_engine_sessions(chain->server.engine) == 0);
    rig_call(&chain->server, read_traffic, &traffic);
    assert_int_equal(traffic.sessions_opened, 1);
    assert_int_equal(traffic.sessions_closed, 1);
    assert_int_equal(traffic.associations_opened, 2);
    close(control);
    close(fd);
    chain_stop(chain);
    free(chain);
}

static void close_udp(struct rig_engine *rig, void *argument)
{
    (void)argument;
    ss_engine_unlisten_udp(rig->engine, rig->udp_port);
}

/* UDP ASSOCIATE; the code of the reply. */
static uint8_t ask_associate(uint16_t local_port)
{
    const uint8_t request[] = {5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0};
    uint8_t reply[12];
    int fd = rig_connect(local_port);

    rig_send(fd, request, sizeof request);
    rig_receive(fd, reply, sizeof reply);
    close(fd);
    return reply[3];
}

static void a_connection_for_udp_ends_with_its_port(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct opening opening;
    uint16_t own, port;
    int fd = rig_udp_open(&own), control;
    (void)state;

    chain_start(chain);
    control = rig_socks_associate(chain->local.port, &port);
    echo_datagram(fd, port, chain);
    rig_call(&chain->local, close_udp, NULL);
    assert_int_equal(rig_receive_end(control), 0);
    close(control);
    assert_int_equal(ask_associate(chain->local.port), 7);
    opening = opening_of_udp(&chain->local);
    rig_call(&chain->local, open_ports, &opening);
    control = rig_socks_associate(chain->local.port, &port);
    echo_datagram(fd, port, chain);
    close(control);
    close(fd);
    chain_stop(chain);
    free(chain);
}

static void udp_may_begin_while_running(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct opening opening;
    struct rig_engine local;
    uint16_t own, port;
    int fd = rig_udp_open(&own), control, session;
    (void)state;

    chain_start(chain);
    chain->options.udp = false;
    chain->options.password = key('a');
    rig_local_start(&local, &chain->options, chain->server.port);
    session = rig_socks_connect(local.port, chain->target.port);
    echo(session);
    assert_int_equal(ask_associate(local.port), 7);
    opening = opening_of_udp(&local);
    rig_call(&local, open_ports, &opening);
    control = rig_socks_associate(local.port, &port);
    echo_datagram(fd, port, chain);
    echo(session);
    end(session);
    close(control);
    close(fd);
    rig_stop(&local);
    chain_stop(chain);
    free(chain);
}

static void try_udp(struct rig_engine *rig, void *argument)
{
    struct opening opening = opening_of_udp(rig);
    struct ss_listener_options options = {
        .address = {.ip = {.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}}, .port = rig->port}};
    const char *error_text = NULL;

    assert_int_equal(ss_role_new(&options.role, &opening.role), SS_OK);
    *(enum ss_status *)argument =
        ss_engine_listen_udp(rig->engine, &options, &rig->udp_port, &error_text);
    assert_non_null(error_text);
    ss_role_release(options.role);
}

/* All descriptors were given to connections. */
static void udp_may_not_begin_without_descriptors(void **state)
{
    struct rig_options options = rig_defaults();
    enum ss_status status = SS_OK;
    struct rig_engine local;
    (void)state;

    options.engine.workers = workers;
    options.engine.descriptors = 256;
    rig_local_start(&local, &options, 9);
    rig_call(&local, try_udp, &status);
    assert_int_equal(status, SS_ERR_LIMIT);
    rig_stop(&local);
}

struct many {
    struct ss_listener *listeners[64];
    int opened;
};

static void open_many(struct rig_engine *rig, void *argument)
{
    struct opening opening = opening_of_server(rig);
    struct many *many = argument;
    struct ss_listener_options options = {
        .backlog = 1, .address = {.ip = {.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}}}};

    assert_int_equal(ss_role_new(&options.role, &opening.role), SS_OK);
    many->opened = 0;
    while (many->opened < 64 &&
           ss_engine_listen(rig->engine, &options, &many->listeners[many->opened], NULL) == SS_OK)
        many->opened++;
    ss_role_release(options.role);
}

static void close_many(struct rig_engine *rig, void *argument)
{
    struct many *many = argument;

    while (many->opened > 0)
        ss_engine_unlisten(rig->engine, many->listeners[--many->opened]);
}

/* Listening sockets take the descriptors of sessions, but not the last, and give them back. */
static void ports_that_come_later_take_places_of_sessions(void **state)
{
    struct rig_options options = rig_defaults();
    struct rig_engine server;
    struct many many;
    int fds[16];
    (void)state;

    options.engine.descriptors = 76;
    options.engine.max_connections = 16;
    options.engine.listeners = 1;
    rig_server_start(&server, &options);
    rig_call(&server, open_many, &many);
    assert_in_range(many.opened, 2, 63);
    for (int i = 0; i < 16; i++)
        fds[i] = rig_connect(server.port);
    rig_wait_until(ss_engine_sessions(server.engine) >= 1);
    rig_pause();
    assert_true(ss_engine_sessions(server.engine) <= 2);
    rig_call(&server, close_many, &many);
    rig_wait_until(ss_engine_sessions(server.engine) >= 8); /* of 16: half may be unproven */
    for (int i = 0; i < 16; i++)
        close(fds[i]);
    rig_stop(&server);
}

/* -- users, where the method has them -- */

struct counted {
    struct ss_user_counters counters;
    atomic_int lists; /* that name it */
};

static void let_go(void *tag)
{
    struct counted *counted = tag;

    atomic_fetch_sub(&counted->lists, 1);
}

static struct ss_users *users_of(struct counted *a, struct counted *b)
{
    struct ss_user_options list[2];
    struct ss_key_fault fault;
    struct ss_users *users;
    size_t count = 0;

    if (a != NULL)
        list[count++] =
            (struct ss_user_options){.name = "ann",
                                     .password = {(const uint8_t *)key('a'), strlen(key('a'))},
                                     .tag = a,
                                     .release = let_go};
    if (b != NULL)
        list[count++] =
            (struct ss_user_options){.name = "bob",
                                     .password = {(const uint8_t *)key('b'), strlen(key('b'))},
                                     .tag = b,
                                     .release = let_go};
    assert_int_equal(ss_users_new(&users, ss_method_find(rig_method), list, count, &fault), SS_OK);
    if (a != NULL)
        a->lists++;
    if (b != NULL)
        b->lists++;
    return users;
}

static void give_users(struct rig_engine *rig, void *argument)
{
    assert_int_equal(ss_engine_set_users(rig->engine, rig->profile, argument), SS_OK);
    ss_users_release(argument);
}

static void end_user(struct rig_engine *rig, void *argument)
{
    const struct ss_sessions_of which = {.profile = rig->profile, .user = argument};

    assert_int_equal(ss_engine_end_sessions(rig->engine, &which), SS_OK);
}

static void a_removed_user_loses_its_sessions(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    static struct counted ann, bob;
    char password[128];
    uint16_t own, ports[2];
    int udp[] = {rig_udp_open(&own), rig_udp_open(&own)}, controls[2], fds[2];
    (void)state;

    if (!ss_method_find(rig_method)->has_identities) {
        close(udp[0]);
        close(udp[1]);
        free(chain);
        skip();
    }
    chain->options = rig_defaults();
    chain->options.engine.workers = workers;
    chain->options.udp = true;
    chain->options.password = key('c');
    chain->options.users = users_of(&ann, &bob);
    rig_target_start(&chain->target, rig_serve_echo);
    rig_target_start(&chain->second, rig_serve_echo);
    rig_udp_echo_start(&chain->echo);
    rig_server_start(&chain->server, &chain->options);
    ss_users_release(chain->options.users);
    chain->options.users = NULL;
    chain->options.password = password;
    snprintf(password, sizeof password, "%s:%s", key('c'), key('a'));
    rig_local_start(&chain->local, &chain->options, chain->server.port);
    snprintf(password, sizeof password, "%s:%s", key('c'), key('b'));
    rig_local_start(&chain->other, &chain->options, chain->server.port);

    fds[0] = rig_socks_connect(chain->local.port, chain->target.port);
    fds[1] = rig_socks_connect(chain->other.port, chain->second.port);
    controls[0] = rig_socks_associate(chain->local.port, &ports[0]);
    controls[1] = rig_socks_associate(chain->other.port, &ports[1]);
    for (int i = 0; i < 2; i++) {
        echo(fds[i]);
        echo_datagram(udp[i], ports[i], chain);
    }
    assert_int_equal(ann.counters.sessions, 2);

    /* The same list anew changes nothing. */
    rig_call(&chain->server, give_users, users_of(&ann, &bob));
    for (int i = 0; i < 2; i++) {
        echo(fds[i]);
        echo_datagram(udp[i], ports[i], chain);
    }
    assert_int_equal(associations_closed(&chain->server), 0);

    rig_call(&chain->server, give_users, users_of(NULL, &bob));
    assert_int_equal(associations_closed(&chain->server), 1);
    assert_int_equal(rig_receive_end(fds[0]), -1);
    send_datagram(udp[0], ports[0], chain);
    assert_true(rig_is_silent(udp[0], 100));
    echo(fds[1]);
    echo_datagram(udp[1], ports[1], chain);
    rig_wait_until(atomic_load(&ann.lists) == 0); /* though bob's session is of her first list */
    assert_int_equal(bob.counters.sessions, 2);
    assert_int_equal(bob.counters.rx_bytes, 3 * 11 + 3);

    /* Ended, but not removed. */
    rig_call(&chain->server, end_user, &bob);
    assert_int_equal(rig_receive_end(fds[1]), -1);
    assert_int_equal(associations_closed(&chain->server), 2);
    echo_datagram(udp[1], ports[1], chain);
    close(fds[1]);
    fds[1] = rig_socks_connect(chain->other.port, chain->second.port);
    echo(fds[1]);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(udp[i]);
        close(controls[i]);
    }
    chain_stop(chain);
    assert_int_equal(atomic_load(&bob.lists), 0);
    free(chain);
}

/* A role a millisecond, and a port that comes and goes, under sessions that begin and end. */
static void changes_race_with_sessions(void **state)
{
    struct chain *chain = calloc(1, sizeof *chain);
    struct change change = {0};
    struct opening opening;
    int roles = 0;
    (void)state;

    chain_start(chain);
    change.profile = chain->server.profile;
    opening = opening_of_server(&chain->server);
    for (int i = 0; i < 200; i++) {
        int fd = rig_socks_connect(chain->local.port, chain->target.port);

        if (i % 20 == 19) {
            rig_call(&chain->server, close_ports, NULL);
            rig_call(&chain->server, open_ports, &opening);
        } else {
            rig_call(&chain->server, give_role, &change);
            roles++;
        }
        if (i % 20 == 19) {
            (void)!send(fd, "x", 1, MSG_NOSIGNAL); /* it may have been cut */
        } else {
            char byte = 'x';

            rig_send(fd, &byte, 1);
            rig_receive(fd, &byte, 1);
        }
        close(fd);
    }
    chain_stop(chain);
    assert_int_equal(atomic_load(&change.released), roles);
    free(chain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_keep_the_role_that_they_began_with),
        cmocka_unit_test(sessions_of_an_old_key_end_when_asked),
        cmocka_unit_test(associations_stay_with_their_key),
        cmocka_unit_test(a_closed_port_leaves_its_sessions),
        cmocka_unit_test(a_connection_for_udp_ends_with_its_port),
        cmocka_unit_test(udp_may_begin_while_running),
        cmocka_unit_test(udp_may_not_begin_without_descriptors),
        cmocka_unit_test(ports_that_come_later_take_places_of_sessions),
        cmocka_unit_test(a_removed_user_loses_its_sessions),
        cmocka_unit_test(changes_race_with_sessions),
    };

    if (!rig_begin(argc, argv, &workers))
        return 1;
    return rig_end(cmocka_run_group_tests(tests, NULL, NULL));
}
