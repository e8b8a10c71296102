/* Datagrams: in at a port, and out at an association's socket. */
#include "relay/udp_relay.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "base/log.h"
#include "proto/socks5.h"
#include "relay/access.h"
#include "relay/engine_internal.h"
#include "relay/session_limits.h"
#include "relay/udp_name.h"

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

/* What a client's datagram says. `address` lies right in front of `payload`, but for a fixed
 * target. */
struct request {
    const struct ss_datagram *datagram;
    struct ss_target target;
    struct ss_view address;
    struct ss_span payload;
    struct ss_control *control;
    struct ss_packet_session *session; /* NULL where datagrams are not of sessions */
    const struct ss_user *user;        /* NULL where there are no users */
};

static void log_refused(struct ss_udp_port *port, const struct ss_addr *client,
                        enum ss_status status)
{
    struct ss_engine *engine = port->relay->engine;
    char text[SS_IP_TEXT_MAX];

    if (status == SS_ERR_STALE)
        ss_log_limited(&engine->opening_log, uv_now(&port->relay->worker->loop), SS_LOG_ERROR,
                       "%s: the clocks differ by %" PRId64 " s, and 30 s are allowed: set both",
                       ss_ip_format(&client->ip, text), ss_packet_clock_difference(port->codec));
    else if (status == SS_ERR_CLOCK)
        ss_log_limited(&engine->opening_log, uv_now(&port->relay->worker->loop), SS_LOG_ERROR,
                       "the clock was set back: new UDP sessions are refused until it is where it "
                       "was, because they might be repeats");
    else if (status == SS_ERR_LIMIT)
        ss_log_limited(&engine->opening_log, uv_now(&port->relay->worker->loop), SS_LOG_ERROR,
                       "too many UDP sessions: new ones are refused; raise max_associations");
    ss_log_limited(&engine->handshake_log, uv_now(&port->relay->worker->loop), SS_LOG_ERROR,
                   "failed to handshake with %s: %s", ss_ip_format(&client->ip, text),
                   status == SS_ERR_REPLAY ? "repeated UDP packet" : "suspicious UDP packet");
}

static bool open_request(struct ss_udp_port *port, struct request *request)
{
    struct ss_packet_opened opened;
    enum ss_status status = ss_packet_open(port->codec, request->datagram->bytes, now_s(), &opened);

    if (status != SS_OK) {
        ss_count(&port->counters->handshakes_failed, 1);
        log_refused(port, &request->datagram->peer, status);
        return false;
    }
    request->session = opened.session;
    request->user = opened.user;
    request->target = opened.target;
    request->address = opened.address;
    request->payload = opened.payload;
    return true;
}

static bool read_socks5_request(struct ss_udp_port *port, struct request *request)
{
    const struct ss_span *bytes = &request->datagram->bytes;
    struct ss_reader in = {.ptr = bytes->ptr, .len = bytes->len};

    request->control = ss_control_find(&port->relay->controls, &request->datagram->peer);
    if (request->control == NULL && !port->role->options.udp_open)
        return false;
    if (ss_socks5_read_udp(&in, &request->target) != SS_OK)
        return false;
    request->payload = (struct ss_span){.ptr = bytes->ptr + (bytes->len - in.len), .len = in.len};
    request->address = (struct ss_view){.ptr = bytes->ptr + SS_SOCKS5_UDP_PREFIX,
                                        .len = bytes->len - in.len - SS_SOCKS5_UDP_PREFIX};
    return true;
}

static bool read_request(struct ss_udp_port *port, struct request *request)
{
    switch (port->role->options.ingress) {
    case SS_INGRESS_SHADOWSOCKS:
        return open_request(port, request);
    case SS_INGRESS_SOCKS5:
        return read_socks5_request(port, request);
    case SS_INGRESS_FIXED:
        request->target = *port->role->options.fixed_target;
        request->address = (struct ss_view){.ptr = port->address, .len = port->address_len};
        request->payload = request->datagram->bytes;
        return true;
    case SS_INGRESS_REDIRECT:
        request->payload = request->datagram->bytes;
        return ss_udp_redirect_target(port, request->datagram, &request->target, &request->address);
    }
    return false;
}

static void send_out(struct ss_association *association, const struct ss_addr *to,
                     struct ss_view payload, bool direct)
{
    static const struct ss_ip any_source;
    struct ss_udp_out *out = ss_association_out(association, to->ip.family, direct);

    if (out == NULL) {
        ss_log_debug("[udp] no socket for a target of this family: a datagram is dropped");
        return;
    }
    if (association->passes_on)
        association->next = *to;
    ss_udp_send(association->port->relay->outbox, out->fd, out->family, to, &any_source, payload);
}

static void send_to_target(struct ss_association *association, const struct ss_addr *to,
                           struct ss_view payload)
{
    send_out(association, to, payload, false);
}

static void send_sealed(struct ss_association *association, const struct ss_addr *to,
                        const struct request *request)
{
    const struct ss_packet_payload payload = {
        .bytes = request->payload,
        .head = SS_UDP_HEADROOM + (size_t)(request->payload.ptr - request->datagram->bytes.ptr),
        .tail = SS_UDP_TAILROOM,
        .link = association->link,
    };
    struct ss_view sealed;

    association->sent_to = *to;
    if (ss_packet_seal_in_place(association->codec, request->address, &payload, now_s(), &sealed) ==
        SS_OK)
        send_to_target(association, to, sealed);
}

static void to_target(struct ss_association *association, const struct request *request)
{
    const struct ss_acl *acl = association->port->role->options.acl;
    const struct ss_view payload = {.ptr = request->payload.ptr, .len = request->payload.len};
    struct ss_addr to = {.port = request->target.port};

    if (ss_target_ip(&request->target, &to.ip)) {
        if (acl == NULL || !ss_acl_outbound_blocked(acl, &to.ip, false))
            send_to_target(association, &to, payload);
        else
            ss_access_log("[udp] outbound blocked", &request->target);
    } else if (ss_udp_name_way(association, SS_UDP_NAME_TARGET, request->target.name, to.port, 0,
                               payload, &to.ip) == SS_UDP_WAY_ADDRESS) {
        send_to_target(association, &to, payload);
    }
}

/* To the server that opens this user's datagrams. */
static void to_next(struct ss_association *association, const struct request *request)
{
    const struct ss_endpoint *next = request->user->next;
    const struct ss_view payload = {.ptr = request->payload.ptr, .len = request->payload.len};
    struct ss_addr to = {.port = next->port};

    if (ss_ip_parse(&to.ip, next->host) == SS_OK ||
        ss_udp_name_way(association, SS_UDP_NAME_SERVER, next->host, to.port, 0, payload, &to.ip) ==
            SS_UDP_WAY_ADDRESS)
        send_to_target(association, &to, payload);
}

/* Its address, or false: then `bytes` are kept until it is known. */
static bool find_upstream(struct ss_association *association, size_t address_len,
                          struct ss_view bytes, struct ss_addr *to)
{
    const struct ss_endpoint *endpoint =
        &association->port->role->options.upstreams[association->upstream].endpoint;

    *to = association->port->servers[association->upstream].addr;
    if (to->ip.family != SS_FAMILY_NONE)
        return true;
    to->port = endpoint->port;
    return ss_udp_name_way(association, SS_UDP_NAME_SERVER, endpoint->host, endpoint->port,
                           address_len, bytes, &to->ip) == SS_UDP_WAY_ADDRESS;
}

static void to_upstream(struct ss_association *association, const struct request *request)
{
    struct ss_addr to;
    uint8_t *joined;

    if (!ss_udp_upstream_is_right(association))
        return;
    ss_udp_upstream_sending(association);
    to = association->port->servers[association->upstream].addr;
    if (to.ip.family != SS_FAMILY_NONE) {
        send_sealed(association, &to, request);
        return;
    }
    /* A fixed target's address is brought in front of the payload, where there is room for it. */
    joined = request->payload.ptr - request->address.len;
    memmove(joined, request->address.ptr, request->address.len);
    if (find_upstream(
            association, request->address.len,
            (struct ss_view){.ptr = joined, .len = request->address.len + request->payload.len},
            &to)) {
        if (association->port->relay->engine->guard != NULL)
            ss_dialed_note(&association->port->relay->worker->dialed, &to);
        send_sealed(association, &to, request);
    }
}

/* Where the access control list sends a client's datagram; the address is in *to. */
static enum ss_udp_way way_of(struct ss_association *association, const struct request *request,
                              struct ss_addr *to)
{
    const struct ss_acl *acl = association->port->role->options.acl;

    if (acl == NULL)
        return SS_UDP_WAY_UPSTREAM;
    to->port = request->target.port;
    if (ss_target_ip(&request->target, &to->ip))
        return ss_acl_addresses_route(acl, &to->ip, 1) == SS_ACL_BYPASS ? SS_UDP_WAY_ADDRESS
                                                                        : SS_UDP_WAY_UPSTREAM;
    return ss_udp_name_way(association, SS_UDP_NAME_CLIENT_TARGET, request->target.name, to->port,
                           request->address.len,
                           (struct ss_view){.ptr = request->address.ptr,
                                            .len = request->address.len + request->payload.len},
                           &to->ip);
}

static void from_client_program(struct ss_association *association, const struct request *request)
{
    struct ss_addr to;

    switch (way_of(association, request, &to)) {
    case SS_UDP_WAY_NONE:
        break;
    case SS_UDP_WAY_ADDRESS:
        send_out(association, &to,
                 (struct ss_view){.ptr = request->payload.ptr, .len = request->payload.len}, true);
        break;
    case SS_UDP_WAY_UPSTREAM:
        to_upstream(association, request);
        break;
    }
}

void ss_udp_send_waiting(struct ss_association *association, const struct ss_addr *to,
                         size_t address_len, struct ss_view bytes)
{
    struct ss_udp_relay *relay = association->port->relay;

    if (address_len != 0) {
        const struct ss_packet_payload payload = {
            .bytes = {.ptr = (uint8_t *)(uintptr_t)bytes.ptr + address_len,
                      .len = bytes.len - address_len},
            .head = address_len,
            .link = association->link};
        const struct ss_span out = {.ptr = relay->scratch, .len = relay->scratch_len};
        size_t sealed_len;

        association->sent_to = *to;
        if (ss_packet_seal(association->codec,
                           (struct ss_view){.ptr = bytes.ptr, .len = address_len}, &payload,
                           now_s(), out, &sealed_len) != SS_OK)
            return;
        bytes = (struct ss_view){.ptr = relay->scratch, .len = sealed_len};
    }
    send_to_target(association, to, bytes);
    ss_udp_flush(relay->outbox); /* the bytes go away */
}

void ss_udp_send_upstream(struct ss_association *association, size_t address_len,
                          struct ss_view bytes)
{
    struct ss_addr to;

    ss_udp_upstream_sending(association);
    if (find_upstream(association, address_len, bytes, &to))
        ss_udp_send_waiting(association, &to, address_len, bytes);
}

void ss_udp_send_direct(struct ss_association *association, const struct ss_addr *to,
                        struct ss_view payload)
{
    send_out(association, to, payload, true);
    ss_udp_flush(association->port->relay->outbox);
}

static void set_user(struct ss_association *association, const struct ss_user *user)
{
    association->passes_on = user->next != NULL;
    association->user = user->tag;
    if (association->user != NULL)
        atomic_fetch_add_explicit(&association->user->sessions, 1, memory_order_relaxed);
}

static void count_up(struct ss_association *association, size_t len)
{
    ss_count(&association->port->counters->rx_bytes, len);
    ss_count(&association->port->counters->rx_datagrams, 1);
    if (association->user != NULL)
        atomic_fetch_add_explicit(&association->user->rx_bytes, len, memory_order_relaxed);
}

static struct ss_association *association_for(struct ss_udp_port *port,
                                              const struct request *request)
{
    const struct ss_datagram *datagram = request->datagram;
    struct ss_association *association = request->session != NULL
                                             ? request->session->owner
                                             : ss_association_find(port, &datagram->peer);

    if (association == NULL) {
        association = ss_association_new(port, &datagram->peer, request->session);
        if (association == NULL)
            return NULL;
        if (request->user != NULL)
            set_user(association, request->user);
        if (request->control != NULL)
            ss_control_attach(request->control, association);
    } else {
        ss_association_touch(association);
    }
    association->local = datagram->local;
    association->asked = datagram->original;
    if (request->session != NULL) /* it may have moved: replies follow it */
        association->client = datagram->peer;
    return association;
}

bool ss_udp_is_too_large(const struct ss_udp_port *port, size_t payload_len)
{
    uint32_t mtu = port->relay->engine->options.mtu;

    if (mtu == 0 || payload_len + SS_UDP_MTU_OVERHEAD <= mtu)
        return false;
    ss_log_debug("[udp] a datagram of %zu bytes is above the MTU that was set", payload_len);
    return true;
}

static void from_client(struct ss_udp_port *port, const struct ss_datagram *datagram)
{
    struct request request = {.datagram = datagram};
    struct ss_association *association;

    ss_count(&port->counters->rx_wire_bytes, datagram->bytes.len);
    if (ss_access_refuses_client(port->relay->engine, port->role, &datagram->peer.ip))
        return;
    if (!read_request(port, &request) || ss_udp_is_too_large(port, request.payload.len))
        return;
    association = association_for(port, &request);
    if (association == NULL)
        return;
    if (!ss_datagram_is_granted(port->role, association->user, request.payload.len,
                                port->relay->worker))
        return;
    count_up(association, request.payload.len);
    if (association->passes_on)
        to_next(association, &request);
    else if (port->role->options.egress == SS_EGRESS_UPSTREAM)
        from_client_program(association, &request);
    else
        to_target(association, &request);
}

void ss_udp_port_readable(uv_poll_t *poll, int status, int events)
{
    struct ss_udp_port *port = poll->data;

    (void)status;
    (void)events;
    ss_udp_port_receive(port, port->fd, NULL);
}

void ss_udp_foresee(struct ss_udp_relay *relay, struct ss_packet_codec *codec,
                    const struct ss_datagram *got, size_t count)
{
    struct ss_view wires[SS_UDP_BATCH];

    for (size_t i = 0; i < count; i++)
        wires[i] = (struct ss_view){.ptr = got[i].bytes.ptr, .len = got[i].bytes.len};
    ss_packet_foresee(codec, relay->foreseen, wires, count);
}

void ss_udp_port_receive(struct ss_udp_port *port, int fd, const struct ss_addr *original)
{
    struct ss_udp_relay *relay = port->relay;
    struct ss_datagram got[SS_UDP_BATCH];

    for (int i = 0; i < SS_UDP_BATCHES_MAX || ss_udp_holds_more(relay->inbox); i++) {
        size_t count = ss_udp_receive(relay->inbox, fd, got);

        if (port->role->options.ingress == SS_INGRESS_SHADOWSOCKS)
            ss_udp_foresee(relay, port->codec, got, count);
        for (size_t k = 0; k < count; k++) {
            if (original != NULL)
                got[k].original = *original;
            from_client(port, &got[k]);
        }
        ss_udp_flush(relay->outbox);
        if (count < SS_UDP_BATCH && !ss_udp_holds_more(relay->inbox))
            break;
    }
}
