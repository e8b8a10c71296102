/* Redirected datagrams, and the sockets that answer them. */
#include "relay/udp_redirect.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "crypto/kdf.h"
#include "crypto/random.h"
#include "net/redirect.h"
#include "net/socket.h"
#include "relay/engine_internal.h"
#include "relay/udp_relay.h"

/* A socket without answers for so long goes, so that it does not stand in the way of a program that
 * wants its port on all addresses. */
#define IDLE_MS 30000

/* Slots that stay resident though free, and those beyond the capacity that are still closing. */
#define KEEP        16
#define CLOSING_MAX 256

#define BUCKETS 256

/* A socket that is bound to an address of somebody else. */
struct answer {
    struct answer *hash_next;
    struct ss_deadline idle;
    struct ss_udp_port *port; /* that it was opened for */
    struct ss_addr name;
    uv_poll_t poll; /* its `data` is the answer */
    struct ss_udp_answers *answers;
    int fd;
};

struct ss_udp_answers {
    struct ss_udp_relay *relay;
    struct ss_pool *pool;
    struct answer *buckets[BUCKETS];
    struct ss_deadline_queue idle; /* in the order of their last use */
    uint32_t count, capacity;
    uint8_t seed[16];
};

enum ss_status ss_udp_answers_new(struct ss_udp_answers **out, struct ss_udp_relay *relay,
                                  uint32_t capacity)
{
    struct ss_udp_answers *answers = calloc(1, sizeof *answers);

    *out = NULL;
    if (answers == NULL)
        return SS_ERR_MEMORY;
    answers->relay = relay;
    answers->capacity = capacity;
    answers->pool = ss_pool_new(&(struct ss_pool_options){
        .slot_size = sizeof(struct answer), .capacity = capacity + CLOSING_MAX, .keep = KEEP});
    if (answers->pool == NULL) {
        free(answers);
        return SS_ERR_MEMORY;
    }
    ss_random_bytes(answers->seed, sizeof answers->seed);
    ss_deadline_queue_init(&answers->idle, IDLE_MS);
    *out = answers;
    return SS_OK;
}

void ss_udp_answers_free(struct ss_udp_answers *answers)
{
    if (answers == NULL)
        return;
    ss_pool_free(answers->pool);
    free(answers);
}

static struct answer **bucket_of(struct ss_udp_answers *answers, const struct ss_addr *name)
{
    uint8_t key[16 + 2 + 1];

    memcpy(key, name->ip.bytes, 16);
    key[16] = (uint8_t)(name->port >> 8);
    key[17] = (uint8_t)name->port;
    key[18] = name->ip.family;
    return &answers->buckets[ss_fingerprint(answers->seed, key, sizeof key) % BUCKETS];
}

static void on_closed(uv_handle_t *handle)
{
    struct answer *answer = handle->data;

    ss_pool_release(answer->answers->pool, answer);
}

static void close_answer(struct answer *answer)
{
    struct ss_udp_answers *answers = answer->answers;
    struct answer **link = bucket_of(answers, &answer->name);

    while (*link != answer)
        link = &(*link)->hash_next;
    *link = answer->hash_next;
    answers->count--;
    ss_deadline_stop(&answer->idle);
    ss_udp_flush(answers->relay->outbox); /* its descriptor's number may be another's soon */
    uv_close((uv_handle_t *)&answer->poll, on_closed);
    ss_socket_close(answer->fd);
}

static struct answer *oldest(struct ss_udp_answers *answers)
{
    struct ss_deadline *first = ss_deadline_first(&answers->idle);

    return first != NULL ? SS_CONTAINER_OF(first, struct answer, idle) : NULL;
}

void ss_udp_answers_close(struct ss_udp_answers *answers, const struct ss_udp_port *port)
{
    if (answers == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct answer *answer = answers->buckets[i];

        while (answer != NULL) {
            struct answer *next = answer->hash_next;

            if (port == NULL || answer->port == port)
                close_answer(answer);
            answer = next;
        }
    }
}

void ss_udp_answers_expire(struct ss_udp_answers *answers, uint64_t now_ms)
{
    struct answer *answer;

    if (answers == NULL)
        return;
    while ((answer = oldest(answers)) != NULL && answer->idle.due_ms <= now_ms)
        close_answer(answer);
}

uint64_t ss_udp_answers_due_ms(struct ss_udp_answers *answers)
{
    const struct ss_deadline *first = answers != NULL ? ss_deadline_first(&answers->idle) : NULL;

    return first != NULL ? first->due_ms : 0;
}

uint32_t ss_udp_answers_trim(struct ss_udp_answers *answers)
{
    return answers != NULL ? ss_pool_trim(answers->pool) : 0;
}

/* Groups, with IPv4 all that is above them (broadcast, and what was never given away), and what is
 * known on one link alone: no address of the internet. */
static bool is_of_no_host(const struct ss_ip *ip)
{
    if (ip->family == SS_FAMILY_IPV4)
        return ip->bytes[0] >= 224;
    return ip->bytes[0] == 0xff || (ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80);
}

/* -- there -- */

bool ss_udp_redirect_target(struct ss_udp_port *port, const struct ss_datagram *datagram,
                            struct ss_target *target, struct ss_view *address)
{
    struct ss_worker *worker = port->relay->worker;
    const struct ss_addr *original = &datagram->original;
    uint8_t bytes[SS_TARGET_MAX];
    struct ss_writer out = {.ptr = bytes, .len = sizeof bytes};
    uint64_t now_ms = uv_now(&worker->loop);
    size_t len;

    if (original->ip.family == SS_FAMILY_NONE || original->port == 0) {
        ss_log_limited(&worker->engine->dial_log, now_ms, SS_LOG_ERROR,
                       "[udp] unable to get dest addr");
        return false;
    }
    if (is_of_no_host(&original->ip)) {
        ss_log_debug("[udp] a datagram to a group, or to a link, is dropped");
        return false;
    }
    if (ss_loop_guard_refuses(worker->engine->guard, &worker->dialed, port->role, true,
                              &datagram->peer, original, now_ms))
        return false;
    ss_loop_guard_learn(worker, port->role, &datagram->peer, original);
    ss_target_from_addr(target, original);
    if (ss_target_write(&out, target) != SS_OK)
        return false;
    len = sizeof bytes - out.len;
    memcpy(datagram->bytes.ptr - len, bytes, len);
    *address = (struct ss_view){.ptr = datagram->bytes.ptr - len, .len = len};
    return true;
}

/* -- and back -- */

/* A client answers to where an answer came from: to us, if the rules see such sockets first. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct answer *answer = poll->data;

    (void)status;
    (void)events;
    ss_udp_port_receive(answer->port, answer->fd, &answer->name);
}

static enum ss_status open_socket(int *fd, const struct ss_udp_port *port,
                                  const struct ss_addr *name)
{
    const struct ss_engine_options *options = &port->relay->engine->options;
    const struct ss_udp_socket_options how = {
        .ipv6_only = true,
        .reuse_port = port->reuse_port,
        .reuse_address = true,
        .transparent = true,
        .dont_fragment = options->mtu != 0,
        .mark = options->mark,
    };
    const char *error_text = "";
    enum ss_status status = ss_udp_open(fd, name, &how, &error_text);
    char text[SS_ADDR_TEXT_MAX];

    if (status != SS_OK)
        ss_log_limited(&port->relay->engine->dial_log, uv_now(&port->relay->worker->loop),
                       SS_LOG_ERROR, "[udp] an answer from %s is lost: %s",
                       ss_addr_format(name, text), error_text);
    return status;
}

static struct answer *open_answer(struct ss_udp_port *port, const struct ss_addr *name)
{
    struct ss_udp_answers *answers = port->relay->answers;
    struct answer **bucket = bucket_of(answers, name);
    struct answer *answer;

    if (answers->count == answers->capacity)
        close_answer(oldest(answers));
    answer = ss_pool_acquire(answers->pool);
    if (answer == NULL)
        return NULL;
    memset(answer, 0, sizeof *answer);
    if (open_socket(&answer->fd, port, name) != SS_OK) {
        ss_pool_release(answers->pool, answer);
        return NULL;
    }
    if (uv_poll_init(&port->relay->worker->loop, &answer->poll, answer->fd) != 0) {
        ss_socket_close(answer->fd);
        ss_pool_release(answers->pool, answer);
        return NULL;
    }
    answer->poll.data = answer;
    answer->answers = answers;
    answer->port = port;
    answer->name = *name;
    answer->hash_next = *bucket;
    *bucket = answer;
    answers->count++;
    uv_poll_start(&answer->poll, UV_READABLE, on_readable);
    ss_worker_start_trimming(port->relay->worker);
    return answer;
}

static struct answer *find_answer(struct ss_udp_answers *answers, const struct ss_addr *name)
{
    struct answer *answer = *bucket_of(answers, name);

    while (answer != NULL &&
           !(answer->name.port == name->port && ss_ip_equal(&answer->name.ip, &name->ip)))
        answer = answer->hash_next;
    return answer;
}

/* A socket for one datagram: one that stays would take what is meant for a program of this
 * machine. */
static void answer_once(struct ss_association *association, const struct ss_addr *name,
                        struct ss_view payload)
{
    static const struct ss_ip any_source;
    struct ss_udp_port *port = association->port;
    int fd;

    if (open_socket(&fd, port, name) != SS_OK)
        return;
    ss_udp_send(port->relay->outbox, fd, name->ip.family, &association->client, &any_source,
                payload);
    ss_udp_flush(port->relay->outbox);
    ss_socket_close(fd);
}

void ss_udp_redirect_answer(struct ss_association *association, const struct ss_target *origin,
                            struct ss_view payload)
{
    static const struct ss_ip any_source;
    struct ss_udp_port *port = association->port;
    struct ss_udp_answers *answers = port->relay->answers;
    struct ss_worker *worker = port->relay->worker;
    struct ss_addr name = {.port = origin->port};
    struct answer *answer;

    if (origin->atyp == SS_ATYP_NAME || !ss_target_ip(origin, &name.ip)) {
        ss_log_limited(&worker->engine->dial_log, uv_now(&worker->loop), SS_LOG_ERROR,
                       "[udp] ss-redir does not support domain name");
        return;
    }
    if (name.ip.family != association->client.ip.family || name.port == 0 ||
        ss_ip_is_any(&name.ip) || is_of_no_host(&name.ip)) {
        ss_log_debug("[udp] an answer from an address that can't be answered from is dropped");
        return;
    }
    answer = find_answer(answers, &name);
    if (answer == NULL) {
        if (ss_redirect_is_local(&name.ip)) {
            /* A server must not have us pose as a service of this machine, unless that was asked.
             */
            if (name.port == association->asked.port &&
                ss_ip_equal(&name.ip, &association->asked.ip))
                answer_once(association, &name, payload);
            else
                ss_log_debug("[udp] an answer from an address of this machine is dropped");
            return;
        }
        answer = open_answer(port, &name);
        if (answer == NULL)
            return;
    }
    ss_worker_start_deadline(worker, &answers->idle, &answer->idle);
    ss_udp_send(port->relay->outbox, answer->fd, name.ip.family, &association->client, &any_source,
                payload);
}
