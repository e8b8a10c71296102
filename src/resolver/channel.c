/* Binds c-ares to the loop: a poll handle for each of its sockets and one timer for its time-outs.
 */
#include "resolver/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ares.h>

#include "base/heap.h"
#include "base/log.h"
#include "net/socket.h"
#include "net/sockopt.h"
#include "resolver/resolver.h"

/*
 * Sockets that are watched at once, with those that are still closing. c-ares opens a UDP socket
 * for each name server that it has turned to, and a TCP socket where an answer was cut short.
 */
#define SOCKETS_MAX 64

enum { DNS_CLASS_IN = 1, DNS_TYPE_A = 1, DNS_TYPE_AAAA = 28 };

/* Newer versions of c-ares can spread their queries over several source ports. */
#define QUERIES_PER_SOCKET 256

struct watched {
    uv_poll_t poll;
    ares_socket_t fd;
    int events; /* of libuv, that c-ares waits for */
    enum { WATCHED_FREE, WATCHED_OPEN, WATCHED_CLOSING } state;
};

struct ss_channel {
    ares_channel ares;
    uv_loop_t *loop;
    uv_timer_t timer;
    struct ss_channel_events events;
    void *owner;
    unsigned open_handles; /* the timer, and sockets that are open or closing */
    uint32_t *sockets_left;
    uint32_t mark;
    uint32_t asked, outstanding; /* since it was idle; of those */
    uint64_t silent_since_ms;    /* when something came last, or the first question went */
    uint32_t needed; /* places for the sockets that a name may open before the loop turns */
    bool short_of_room;
    bool closing;
    bool reading; /* c-ares is at work on a socket that has something to read, and no error */
    struct ss_log_limit full;
    struct watched sockets[SOCKETS_MAX];
};

enum ss_status ss_resolver_global_start(void)
{
#ifdef SS_SANITIZED
    int error = ares_library_init(ARES_LIB_INIT_ALL);
#else
    int error =
        ares_library_init_mem(ARES_LIB_INIT_ALL, ss_heap_malloc, ss_heap_free, ss_heap_realloc);
#endif

    return error == ARES_SUCCESS ? SS_OK : SS_ERR_MEMORY;
}

void ss_resolver_global_end(void)
{
    ares_library_cleanup();
}

/* Once every handle has closed, and so never from inside c-ares, the channel can go. */
static void on_handle_closed(struct ss_channel *channel)
{
    if (--channel->open_handles != 0 || !channel->closing)
        return;
    ares_destroy(channel->ares); /* ends what lookups are left */
    channel->events.closed(channel->owner, channel);
    free(channel);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct ss_channel *channel = handle->data;
    struct watched *watched = (struct watched *)handle;

    watched->state = WATCHED_FREE;
    if (channel->short_of_room && !channel->closing) {
        channel->short_of_room = false;
        channel->events.worked(channel->owner, channel);
    }
    on_handle_closed(channel);
}

static void on_timer(uv_timer_t *timer);

/* After anything that c-ares did: it alone knows which of its time-outs is next. */
static void arm(struct ss_channel *channel)
{
    struct timeval left;
    uint64_t left_ms;

    if (channel->closing)
        return;
    if (ares_timeout(channel->ares, NULL, &left) == NULL) {
        uv_timer_stop(&channel->timer);
        return;
    }
    left_ms = (uint64_t)left.tv_sec * 1000 + (uint64_t)(left.tv_usec + 999) / 1000;
    uv_timer_start(&channel->timer, on_timer, left_ms != 0 ? left_ms : 1, 0);
}

static void worked(struct ss_channel *channel)
{
    arm(channel);
    channel->events.worked(channel->owner, channel);
}

static void on_timer(uv_timer_t *timer)
{
    struct ss_channel *channel = timer->data;

    ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    worked(channel);
}

/*
 * A server that refuses makes an error wait at its socket. The next question's send would be told
 * of it, and c-ares (1.18) turns to another server with that question alone: those before it would
 * wait for their time-out. So errors are told before anything is sent; each may move questions to a
 * server that refuses as well.
 */
static void tell_errors(struct ss_channel *channel)
{
    bool told = true;

    for (int round = 0; told && round < SOCKETS_MAX; round++) {
        told = false;
        for (size_t i = 0; i < SOCKETS_MAX; i++) {
            const struct watched *watched = &channel->sockets[i];

            if (watched->state != WATCHED_OPEN || !ss_socket_has_error(watched->fd))
                continue;
            ares_process_fd(channel->ares, watched->fd, watched->fd);
            told = true;
        }
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct ss_channel *channel = poll->data;
    struct watched *watched = (struct watched *)poll;
    const ares_socket_t fd = watched->fd;

    /* An error (a refused datagram, say) is found by c-ares when it reads or writes. libuv stops to
     * watch a socket with an error, so watching is begun again if c-ares keeps the socket. */
    if (status < 0)
        events = UV_READABLE | UV_WRITABLE;
    channel->reading = status == 0 && (events & UV_READABLE) != 0;
    if (channel->reading)
        channel->silent_since_ms = uv_now(channel->loop);
    ares_process_fd(channel->ares, events & UV_READABLE ? fd : ARES_SOCKET_BAD,
                    events & UV_WRITABLE ? fd : ARES_SOCKET_BAD);
    channel->reading = false;
    tell_errors(channel);
    if (status < 0 && watched->state == WATCHED_OPEN && watched->fd == fd)
        uv_poll_start(&watched->poll, watched->events, on_poll);
    worked(channel);
}

static struct watched *find_watched(struct ss_channel *channel, ares_socket_t fd)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (channel->sockets[i].state == WATCHED_OPEN && channel->sockets[i].fd == fd)
            return &channel->sockets[i];
    }
    return NULL;
}

static struct watched *find_free(struct ss_channel *channel)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (channel->sockets[i].state == WATCHED_FREE)
            return &channel->sockets[i];
    }
    return NULL;
}

/* Without a place, or beyond the bound, c-ares closes the socket again and turns to another server.
 */
static int on_socket_opened(ares_socket_t fd, int type, void *data)
{
    struct ss_channel *channel = data;

    (void)fd;
    (void)type;
    if (*channel->sockets_left != 0 && find_free(channel) != NULL)
        return ARES_SUCCESS;
    ss_log_limited(&channel->full, uv_now(channel->loop), SS_LOG_WARN,
                   "resolver: too many sockets to name servers are open");
    return -1;
}

static struct watched *watch(struct ss_channel *channel, ares_socket_t fd)
{
    struct watched *watched = find_free(channel);

    /* Not watched, its lookups end by their time-out, or with an answer from another server. */
    if (watched == NULL || uv_poll_init_socket(channel->loop, &watched->poll, fd) != 0) {
        ss_log_limited(&channel->full, uv_now(channel->loop), SS_LOG_WARN,
                       "resolver: a socket to a name server can't be watched");
        return NULL;
    }
    watched->poll.data = channel;
    watched->fd = fd;
    watched->state = WATCHED_OPEN;
    channel->open_handles++;
    (*channel->sockets_left)--;
    return watched;
}

static void unwatch(struct ss_channel *channel, struct watched *watched)
{
    (*channel->sockets_left)++;
    /* c-ares closes the descriptor next; its number may be another socket's at once. */
    uv_poll_stop(&watched->poll);
    watched->state = WATCHED_CLOSING;
    uv_close((uv_handle_t *)&watched->poll, on_poll_closed);
}

static void on_socket_state(void *data, ares_socket_t fd, int readable, int writable)
{
    struct ss_channel *channel = data;
    struct watched *watched = find_watched(channel, fd);

    if (channel->closing)
        return;
    if (!readable && !writable) {
        if (watched != NULL)
            unwatch(channel, watched);
        return;
    }
    if (watched == NULL)
        watched = watch(channel, fd);
    if (watched == NULL)
        return;
    watched->events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
    uv_poll_start(&watched->poll, watched->events, on_poll);
}

/*
 * Why a lookup ended without a message. c-ares calls it a refused connection when no server is left
 * to try, whether they could not be reached or said that they failed; what they said is noticed
 * only while it is being read.
 */
static enum ss_status status_of(const struct ss_channel *channel, int error)
{
    switch (error) {
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
        return SS_ERR_NOT_FOUND;
    case ARES_ETIMEOUT:
        return SS_ERR_TIMEOUT;
    case ARES_ENOMEM:
        return SS_ERR_MEMORY;
    case ARES_ECONNREFUSED:
        return channel->reading ? SS_ERR_IO : SS_ERR_UNREACHABLE;
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION:
        return SS_ERR_RESET;
    default:
        return SS_ERR_IO;
    }
}

/* Versions of c-ares that know no zones get the list without those that need one. */
static int set_servers(struct ss_channel *channel, const struct ss_nameservers *servers)
{
    char text[SS_NAMESERVERS_TEXT_MAX];
    int error;

    ss_nameservers_format(servers, true, text);
    error = ares_set_servers_ports_csv(channel->ares, text);
    if (error != ARES_EBADSTR)
        return error;
    ss_nameservers_format(servers, false, text);
    if (text[0] == '\0')
        return error;
    return ares_set_servers_ports_csv(channel->ares, text);
}

/* Without the right to it the connections that follow have said so. */
static int on_socket_made(ares_socket_t fd, int type, void *data)
{
    const struct ss_channel *channel = data;
    enum ss_status status = ss_sockopt_mark(fd, channel->mark);

    (void)type;
    if (status != SS_OK)
        ss_log_debug("resolver: queries can't be marked: %s", ss_status_text(status));
    return 0;
}

static enum ss_status open_ares(struct ss_channel *channel,
                                const struct ss_channel_options *options)
{
    char lookups[] = "b"; /* DNS only: no hosts file, which c-ares would read each time */
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
    /* With everything given, c-ares does not look at the system's configuration at all. */
    struct ares_options wanted = {
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
        .timeout = (int)options->timeout_ms,
        .tries = (int)options->tries,
        .ndots = 0,
        .ndomains = 0,
        .lookups = lookups,
        .servers = &loopback,
        .nservers = 1,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = channel,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
               ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS | ARES_OPT_SERVERS | ARES_OPT_SORTLIST |
               ARES_OPT_SOCK_STATE_CB;
    int error;

#ifdef ARES_OPT_UDP_MAX_QUERIES
    wanted.udp_max_queries = QUERIES_PER_SOCKET;
    mask |= ARES_OPT_UDP_MAX_QUERIES;
#endif
#ifdef ARES_OPT_QUERY_CACHE
    wanted.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif

    error = ares_init_options(&channel->ares, &wanted, mask);
    if (error != ARES_SUCCESS) {
        ss_log_error("resolver: %s", ares_strerror(error));
        return error == ARES_ENOMEM ? SS_ERR_MEMORY : SS_ERR_IO;
    }
    ares_set_socket_callback(channel->ares, on_socket_opened, channel);
    if (channel->mark != 0)
        ares_set_socket_configure_callback(channel->ares, on_socket_made, channel);
    error = options->servers.count != 0 ? set_servers(channel, &options->servers) : ARES_SUCCESS;
    if (error != ARES_SUCCESS) {
        ares_destroy(channel->ares);
        return error == ARES_ENOMEM ? SS_ERR_MEMORY : SS_ERR_ARGUMENT;
    }
    return SS_OK;
}

enum ss_status ss_channel_new(struct ss_channel **out, uv_loop_t *loop,
                              const struct ss_channel_options *options,
                              const struct ss_channel_events *events, void *owner)
{
    struct ss_channel *channel = calloc(1, sizeof *channel);
    enum ss_status status;

    *out = NULL;
    if (channel == NULL)
        return SS_ERR_MEMORY;
    channel->loop = loop;
    channel->events = *events;
    channel->owner = owner;
    channel->sockets_left = options->sockets_left;
    channel->needed = 2 * (uint32_t)(options->servers.count != 0 ? options->servers.count : 1);
    channel->mark = options->mark;
    status = open_ares(channel, options);
    if (status != SS_OK) {
        free(channel);
        return status;
    }
    uv_timer_init(loop, &channel->timer);
    channel->timer.data = channel;
    channel->open_handles = 1;
    *out = channel;
    return SS_OK;
}

static void end_lookup(struct ss_channel_lookup *lookup, int error, const unsigned char *bytes,
                       size_t len)
{
    struct ss_channel *channel = lookup->channel;
    struct ss_answer answer = {.status = status_of(channel, error)};

    channel->outstanding--;
    if (bytes != NULL && len > 0)
        ss_answer_read(&answer, (struct ss_view){bytes, len}, lookup->name, lookup->family);
    lookup->answered(lookup, &answer);
}

/* What hands out the bytes of an answer is deprecated where c-ares has records of its own. */
#if ARES_VERSION >= 0x011c00

static void on_answer(void *arg, ares_status_t error, size_t timeouts,
                      const ares_dns_record_t *record)
{
    unsigned char *bytes = NULL;
    size_t len = 0;

    (void)timeouts;
    if (record != NULL && ares_dns_write(record, &bytes, &len) != ARES_SUCCESS)
        bytes = NULL;
    end_lookup(arg, (int)error, bytes, len);
    ares_free_string(bytes);
}

static void send_query(struct ss_channel *channel, struct ss_channel_lookup *lookup)
{
    (void)ares_query_dnsrec(channel->ares, lookup->name, ARES_CLASS_IN,
                            lookup->family == SS_FAMILY_IPV4 ? ARES_REC_TYPE_A : ARES_REC_TYPE_AAAA,
                            on_answer, lookup, NULL);
}

#else

static void on_answer(void *arg, int error, int timeouts, unsigned char *bytes, int len)
{
    (void)timeouts;
    end_lookup(arg, error, bytes, len > 0 ? (size_t)len : 0);
}

static void send_query(struct ss_channel *channel, struct ss_channel_lookup *lookup)
{
    ares_query(channel->ares, lookup->name, DNS_CLASS_IN,
               lookup->family == SS_FAMILY_IPV4 ? DNS_TYPE_A : DNS_TYPE_AAAA, on_answer, lookup);
}

#endif

bool ss_channel_has_room(struct ss_channel *channel)
{
    uint32_t left = 0, closing = 0;

    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        left += channel->sockets[i].state == WATCHED_FREE;
        closing += channel->sockets[i].state == WATCHED_CLOSING;
    }
    channel->short_of_room = closing != 0 && left < channel->needed;
    return !channel->short_of_room;
}

void ss_channel_ask(struct ss_channel *channel, struct ss_channel_lookup *lookup)
{
    lookup->channel = channel;
    if (channel->outstanding != 0)
        tell_errors(channel);
    if (channel->outstanding++ == 0) {
        channel->asked = 0;
        channel->silent_since_ms = uv_now(channel->loop);
    }
    channel->asked++;
    send_query(channel, lookup);
    arm(channel);
}

void ss_channel_cancel(struct ss_channel *channel)
{
    ares_cancel(channel->ares);
    arm(channel);
}

bool ss_channel_is_idle(const struct ss_channel *channel)
{
    return channel->outstanding == 0;
}

uint32_t ss_channel_asked(const struct ss_channel *channel)
{
    return channel->outstanding != 0 ? channel->asked : 0;
}

uint64_t ss_channel_silent_ms(const struct ss_channel *channel)
{
    return channel->outstanding != 0 ? uv_now(channel->loop) - channel->silent_since_ms : 0;
}

void ss_channel_close(struct ss_channel *channel)
{
    if (channel->closing)
        return;
    channel->closing = true;
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (channel->sockets[i].state == WATCHED_OPEN)
            unwatch(channel, &channel->sockets[i]);
    }
    uv_close((uv_handle_t *)&channel->timer, on_timer_closed);
}
