/* Sockets, opened, closed and kept. */
#include "service/sockets.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define NONE SIZE_MAX

/* What becomes of a socket that is open. */
enum fate {
    FATE_CLOSE,
    FATE_MAKE_WAY, /* closed before others open, since it could be in their way */
    FATE_KEEP
};

/* A change under way. */
struct work {
    struct ss_sockets *sockets;
    struct ss_wanted_socket *wanted;
    size_t count;
    struct ss_sockets_change *change;
    size_t *buckets; /* places of open sockets, by address */
    size_t bucket_mask;
    enum fate *fates;            /* of the open ones */
    size_t *taken;               /* the open one that a wanted one takes over, or NONE */
    struct ss_open_socket *made; /* the list to come */
    size_t made_count;
    uint8_t opening[2][(UINT16_MAX + 1) / 8]; /* a bit a port that is opened, by transport */
};

/* -- one socket -- */

static enum ss_status open_one(struct ss_engine *engine, struct ss_open_socket *socket,
                               const char **error_text)
{
    enum ss_status status;

    if (socket->udp)
        status = ss_engine_listen_udp(engine, &socket->options, &socket->udp_port, error_text);
    else
        status = ss_engine_listen(engine, &socket->options, &socket->listener, error_text);
    if (status == SS_OK)
        ss_role_hold(socket->options.role);
    return status;
}

static void add_traffic(struct ss_traffic *sum, const struct ss_traffic *more)
{
    sum->sessions_opened += more->sessions_opened;
    sum->sessions_closed += more->sessions_closed;
    sum->rx_bytes += more->rx_bytes;
    sum->tx_bytes += more->tx_bytes;
    sum->rx_wire_bytes += more->rx_wire_bytes;
    sum->handshakes_failed += more->handshakes_failed;
    sum->rx_datagrams += more->rx_datagrams;
    sum->tx_datagrams += more->tx_datagrams;
    sum->associations_opened += more->associations_opened;
    sum->associations_closed += more->associations_closed;
}

void ss_open_socket_traffic(const struct ss_open_socket *socket, struct ss_traffic *traffic)
{
    *traffic = (struct ss_traffic){0};
    if (socket->listener != NULL)
        ss_listener_traffic(socket->listener, traffic);
    else
        ss_udp_port_traffic(socket->udp_port, traffic);
}

static void end_sessions(struct ss_engine *engine, struct ss_listener *listener,
                         const struct ss_profile *profile)
{
    const struct ss_sessions_of which = {.listener = listener, .profile = profile};

    if (ss_engine_end_sessions(engine, &which) != SS_OK)
        ss_log_error("sessions of a port can't be ended: %s", ss_status_text(SS_ERR_MEMORY));
}

static void close_one(struct ss_sockets *sockets, struct ss_open_socket *socket)
{
    struct ss_traffic traffic;

    ss_open_socket_traffic(socket, &traffic);
    add_traffic(&sockets->past, &traffic);
    if (socket->listener != NULL)
        ss_engine_unlisten(sockets->engine, socket->listener);
    else
        ss_engine_unlisten_udp(sockets->engine, socket->udp_port);
    ss_role_release(socket->options.role);
    socket->listener = NULL;
    socket->udp_port = NULL;
}

static enum ss_status set_role(struct ss_open_socket *socket, struct ss_role *role)
{
    enum ss_status status = socket->udp ? ss_udp_port_set_role(socket->udp_port, role)
                                        : ss_listener_set_role(socket->listener, role);

    if (status == SS_OK) {
        ss_role_hold(role);
        ss_role_release(socket->options.role);
        socket->options.role = role;
    }
    return status;
}

/* -- who takes over from whom -- */

static size_t bucket_of(const struct work *work, const struct ss_addr *address, bool udp)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)(address->port * 2u + udp);

    for (size_t i = 0; i < sizeof address->ip.bytes; i++)
        hash = (hash ^ address->ip.bytes[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 29) & work->bucket_mask;
}

static bool same_place(const struct ss_open_socket *socket, const struct ss_addr *address, bool udp)
{
    return socket->udp == udp && socket->options.address.port == address->port &&
           ss_ip_equal(&socket->options.address.ip, &address->ip);
}

/* Whether the socket can serve as it was bound. */
static bool bound_alike(const struct ss_listener_options *a, const struct ss_listener_options *b)
{
    return a->ipv6_only == b->ipv6_only && a->reuse_port == b->reuse_port &&
           a->fast_open == b->fast_open && a->mptcp == b->mptcp && a->backlog == b->backlog &&
           a->keep_alive_s == b->keep_alive_s && a->incoming_sndbuf == b->incoming_sndbuf &&
           a->incoming_rcvbuf == b->incoming_rcvbuf &&
           a->role->options.ingress == b->role->options.ingress &&
           a->role->options.tproxy == b->role->options.tproxy;
}

/* A wanted socket that stands there twice gets it once. */
static size_t find(const struct work *work, const struct ss_wanted_socket *wanted)
{
    const struct ss_addr *address = &wanted->options.address;
    size_t at = bucket_of(work, address, wanted->udp);

    for (; work->buckets[at] != 0; at = (at + 1) & work->bucket_mask) {
        size_t place = work->buckets[at] - 1;

        if (work->fates[place] == FATE_CLOSE &&
            same_place(&work->sockets->list[place], address, wanted->udp) &&
            bound_alike(&work->sockets->list[place].options, &wanted->options))
            return place;
    }
    return NONE;
}

static void match(struct work *work)
{
    const struct ss_sockets *sockets = work->sockets;

    for (size_t i = 0; i < sockets->count; i++) {
        const struct ss_open_socket *socket = &sockets->list[i];
        size_t at = bucket_of(work, &socket->options.address, socket->udp);

        while (work->buckets[at] != 0)
            at = (at + 1) & work->bucket_mask;
        work->buckets[at] = i + 1;
    }
    for (size_t i = 0; i < work->count; i++) {
        const struct ss_wanted_socket *wanted = &work->wanted[i];
        uint16_t port = wanted->options.address.port;

        work->taken[i] = find(work, wanted);
        if (work->taken[i] != NONE)
            work->fates[work->taken[i]] = FATE_KEEP;
        else
            work->opening[wanted->udp][port / 8] |= (uint8_t)(1u << port % 8);
    }
    for (size_t i = 0; i < sockets->count; i++) {
        const struct ss_open_socket *socket = &sockets->list[i];
        uint16_t port = socket->options.address.port;

        if (work->fates[i] == FATE_CLOSE &&
            (work->opening[socket->udp][port / 8] >> port % 8 & 1) != 0)
            work->fates[i] = FATE_MAKE_WAY;
    }
}

/* -- the steps, and the way back -- */

static enum ss_status open_new(struct work *work)
{
    for (size_t i = 0; i < work->count; i++) {
        struct ss_wanted_socket *wanted = &work->wanted[i];
        struct ss_open_socket *socket = &work->made[work->made_count];
        const char *error_text = NULL;
        enum ss_status status;

        if (work->taken[i] != NONE)
            continue;
        *socket = (struct ss_open_socket){
            .options = wanted->options, .udp = wanted->udp, .port = wanted->port};
        status = open_one(work->sockets->engine, socket, &error_text);
        if (status == SS_OK) {
            work->made_count++;
            wanted->is_bound = wanted->is_new = true;
            continue;
        }
        work->change->failed = wanted;
        work->change->error_text = error_text;
        if (!wanted->may_fail || status == SS_ERR_MEMORY)
            return status;
        wanted->error = status;
        wanted->error_text = error_text;
    }
    return SS_OK;
}

static void forget_lost(struct ss_sockets *sockets)
{
    size_t kept = 0;

    for (size_t i = 0; i < sockets->count; i++)
        if (sockets->list[i].listener != NULL || sockets->list[i].udp_port != NULL)
            sockets->list[kept++] = sockets->list[i];
    sockets->count = kept;
}

/* Whoever had to make way comes back, if it can. */
static void undo(struct work *work)
{
    struct ss_sockets *sockets = work->sockets;

    while (work->made_count > 0)
        close_one(sockets, &work->made[--work->made_count]);
    for (size_t i = 0; i < sockets->count; i++) {
        struct ss_open_socket *socket = &sockets->list[i];
        const char *error_text = NULL;

        if (work->fates[i] != FATE_MAKE_WAY)
            continue;
        if (open_one(sockets->engine, socket, &error_text) != SS_OK)
            work->change->lost++;
        ss_role_release(socket->options.role);
    }
    forget_lost(sockets);
    for (size_t i = 0; i < work->count; i++)
        work->wanted[i].is_bound = work->wanted[i].is_new = false;
}

static void make_way(struct work *work)
{
    for (size_t i = 0; i < work->sockets->count; i++) {
        if (work->fates[i] != FATE_MAKE_WAY)
            continue;
        ss_role_hold(work->sockets->list[i].options.role); /* for the way back */
        close_one(work->sockets, &work->sockets->list[i]);
    }
}

/* Gives the kept ones their new roles, or leaves all as they were. `before` has room for theirs. */
static enum ss_status change_roles(struct work *work, struct ss_role **before)
{
    struct ss_open_socket *list = work->sockets->list;
    enum ss_status status = SS_OK;
    size_t done = 0;

    for (; done < work->count && status == SS_OK; done++) {
        if (work->taken[done] == NONE)
            continue;
        before[done] = ss_role_hold(list[work->taken[done]].options.role);
        status = set_role(&list[work->taken[done]], work->wanted[done].options.role);
    }
    for (size_t i = 0; status != SS_OK && i < done; i++) {
        if (work->taken[i] == NONE)
            continue;
        /* It was this before, so there is room; only the memory of a codec could be missing. */
        if (list[work->taken[i]].options.role != before[i] &&
            set_role(&list[work->taken[i]], before[i]) != SS_OK)
            ss_log_error("a port can't be given back what it was for");
        ss_role_release(before[i]);
        before[i] = NULL;
    }
    return status;
}

/* Nothing can fail any more. */
static void finish(struct work *work, struct ss_role **before)
{
    struct ss_sockets *sockets = work->sockets;
    struct ss_sockets_change *change = work->change;

    change->opened = work->made_count;
    for (size_t i = 0; i < sockets->count; i++) {
        if (work->fates[i] == FATE_CLOSE)
            close_one(sockets, &sockets->list[i]);
        else if (work->fates[i] == FATE_MAKE_WAY)
            ss_role_release(sockets->list[i].options.role);
        change->closed += work->fates[i] != FATE_KEEP;
    }
    for (size_t i = 0; i < work->count; i++) {
        const struct ss_profile *old;
        struct ss_open_socket *socket;

        if (work->taken[i] == NONE)
            continue;
        socket = &work->made[work->made_count++];
        *socket = sockets->list[work->taken[i]];
        socket->port = work->wanted[i].port;
        work->wanted[i].is_bound = true;
        change->changed += !ss_role_is_alike(before[i], socket->options.role);
        old = before[i]->options.profile;
        if (old != NULL && old != socket->options.role->options.profile && !socket->udp)
            end_sessions(sockets->engine, socket->listener, old);
        ss_role_release(before[i]);
    }
    free(sockets->list);
    sockets->list = work->made;
    sockets->count = work->made_count;
    work->made = NULL;
}

static enum ss_status run(struct work *work, struct ss_role **before)
{
    enum ss_status status = SS_OK;

    match(work);
    for (size_t i = 0; i < work->count; i++) {
        if (ss_engine_fits(work->sockets->engine, work->wanted[i].options.role))
            continue;
        work->change->failed = &work->wanted[i];
        return SS_ERR_ARGUMENT;
    }
    make_way(work);
    status = open_new(work);
    if (status == SS_OK)
        status = change_roles(work, before);
    if (status == SS_OK)
        finish(work, before);
    else
        undo(work);
    return status;
}

enum ss_status ss_sockets_change(struct ss_sockets *sockets, struct ss_wanted_socket *wanted,
                                 size_t count, struct ss_sockets_change *change)
{
    struct work *work = calloc(1, sizeof *work);
    struct ss_role **before = calloc(count + 1, sizeof(struct ss_role *));
    enum ss_status status = SS_ERR_MEMORY;
    size_t buckets = 16;

    *change = (struct ss_sockets_change){0};
    if (work == NULL || before == NULL)
        goto done;
    while (buckets < 2 * sockets->count)
        buckets *= 2;
    *work = (struct work){.sockets = sockets,
                          .wanted = wanted,
                          .count = count,
                          .change = change,
                          .buckets = calloc(buckets, sizeof *work->buckets),
                          .bucket_mask = buckets - 1,
                          .fates = calloc(sockets->count + 1, sizeof *work->fates),
                          .taken = calloc(count + 1, sizeof *work->taken),
                          .made = calloc(count + 1, sizeof *work->made)};
    if (work->buckets != NULL && work->fates != NULL && work->taken != NULL && work->made != NULL)
        status = run(work, before);
    free(work->buckets);
    free(work->fates);
    free(work->taken);
    free(work->made);
done:
    free(before);
    free(work);
    return status;
}

void ss_sockets_close(struct ss_sockets *sockets, bool end)
{
    for (size_t i = 0; i < sockets->count; i++) {
        struct ss_open_socket *socket = &sockets->list[i];

        if (end && socket->listener != NULL)
            end_sessions(sockets->engine, socket->listener, NULL);
        close_one(sockets, socket);
    }
    free(sockets->list);
    sockets->list = NULL;
    sockets->count = 0;
}

void ss_sockets_clear(struct ss_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++)
        ss_role_release(sockets->list[i].options.role);
    free(sockets->list);
    sockets->list = NULL;
    sockets->count = 0;
}

void ss_sockets_traffic(const struct ss_sockets *sockets, struct ss_traffic *traffic)
{
    *traffic = sockets->past;
    for (size_t i = 0; i < sockets->count; i++) {
        struct ss_traffic one;

        ss_open_socket_traffic(&sockets->list[i], &one);
        add_traffic(traffic, &one);
    }
}
