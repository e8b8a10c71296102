/* Datagrams that come back to an association's socket, and on to its client. */
#include "relay/udp_out.h"

#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "base/log.h"
#include "net/sockopt.h"
#include "relay/engine_internal.h"
#include "relay/session_limits.h"
#include "relay/udp_redirect.h"
#include "relay/udp_relay.h"
#include "relay/udp_upstream.h"

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

static void count_down(struct ss_association *association, size_t len)
{
    ss_count(&association->port->counters->tx_bytes, len);
    ss_count(&association->port->counters->tx_datagrams, 1);
    if (association->user != NULL)
        atomic_fetch_add_explicit(&association->user->tx_bytes, len, memory_order_relaxed);
}

static void send_to_client(struct ss_association *association, struct ss_view bytes)
{
    struct ss_udp_port *port = association->port;

    ss_udp_send(port->relay->outbox, port->fd, port->family, &association->client,
                &association->local, bytes);
}

/* Answers a SOCKS5 client: the prefix goes in front of the address, which lies before the payload.
 */
static struct ss_view with_socks5_prefix(struct ss_view address, size_t payload_len)
{
    uint8_t *first = (uint8_t *)(uintptr_t)address.ptr - SS_SOCKS5_UDP_PREFIX;

    memset(first, 0, SS_SOCKS5_UDP_PREFIX);
    return (struct ss_view){.ptr = first, .len = SS_SOCKS5_UDP_PREFIX + address.len + payload_len};
}

static void from_upstream(struct ss_association *association, const struct ss_datagram *datagram)
{
    struct ss_udp_port *port = association->port;
    struct ss_packet_opened opened;

    if (ss_packet_open_reply(association->codec, association->link, datagram->bytes, now_s(),
                             &opened) != SS_OK) {
        ss_log_debug("[udp] a datagram from a server could not be opened");
        return;
    }
    ss_udp_upstream_answered(association);
    if (ss_udp_is_too_large(port, opened.payload.len))
        return;
    ss_association_touch(association);
    count_down(association, opened.payload.len);
    if (port->role->options.ingress == SS_INGRESS_SOCKS5)
        send_to_client(association, with_socks5_prefix(opened.address, opened.payload.len));
    else if (port->role->options.ingress == SS_INGRESS_REDIRECT)
        ss_udp_redirect_answer(association, &opened.target,
                               (struct ss_view){opened.payload.ptr, opened.payload.len});
    else
        send_to_client(association, (struct ss_view){opened.payload.ptr, opened.payload.len});
}

/*
 * Any target may answer, but none that may not be sent to: nobody asked it. What is passed back as
 * it is comes from the next server alone, since nothing here tells whether it is more than noise.
 */
static bool may_answer(const struct ss_association *association, const struct ss_addr *peer)
{
    const struct ss_role_options *options = &association->port->role->options;
    const struct ss_addr *next = &association->next;

    if (association->passes_on)
        return peer->port == next->port &&
               (ss_ip_equal(&peer->ip, &next->ip) || ss_ip_is_any(&next->ip));
    return options->acl == NULL || options->egress != SS_EGRESS_DIRECT ||
           !ss_acl_outbound_blocked(options->acl, &peer->ip, true);
}

/* Writes the sender's address in front of the payload; there is room. */
static struct ss_view put_origin(const struct ss_datagram *datagram)
{
    uint8_t bytes[SS_TARGET_MAX];
    struct ss_writer out = {.ptr = bytes, .len = sizeof bytes};
    struct ss_target origin;
    size_t len;

    ss_target_from_addr(&origin, &datagram->peer);
    if (ss_target_write(&out, &origin) != SS_OK)
        return (struct ss_view){0};
    len = sizeof bytes - out.len;
    memcpy(datagram->bytes.ptr - len, bytes, len);
    return (struct ss_view){.ptr = datagram->bytes.ptr - len, .len = len};
}

static void from_target(struct ss_association *association, const struct ss_datagram *datagram)
{
    struct ss_udp_port *port = association->port;
    struct ss_view address;
    const struct ss_packet_payload payload = {.bytes = datagram->bytes,
                                              .head = SS_UDP_HEADROOM,
                                              .tail = SS_UDP_TAILROOM,
                                              .link = association->link};
    struct ss_view sealed;

    if (!may_answer(association, &datagram->peer) || ss_udp_is_too_large(port, datagram->bytes.len))
        return;
    if (!ss_datagram_is_granted(port->role, association->user, datagram->bytes.len,
                                port->relay->worker))
        return;
    ss_association_touch(association);
    count_down(association, datagram->bytes.len);
    if (association->passes_on) {
        send_to_client(association, (struct ss_view){datagram->bytes.ptr, datagram->bytes.len});
        return;
    }
    address = put_origin(datagram);
    switch (port->role->options.ingress) {
    case SS_INGRESS_SHADOWSOCKS:
        if (ss_packet_seal_in_place(port->codec, address, &payload, now_s(), &sealed) == SS_OK)
            send_to_client(association, sealed);
        break;
    case SS_INGRESS_SOCKS5:
        send_to_client(association, with_socks5_prefix(address, datagram->bytes.len));
        break;
    case SS_INGRESS_FIXED:
        send_to_client(association, (struct ss_view){datagram->bytes.ptr, datagram->bytes.len});
        break;
    case SS_INGRESS_REDIRECT: {
        struct ss_target origin;

        ss_target_from_addr(&origin, &datagram->peer);
        ss_udp_redirect_answer(association, &origin,
                               (struct ss_view){datagram->bytes.ptr, datagram->bytes.len});
        break;
    }
    }
}

/* What came back for datagrams that were sent. libuv stops watching a socket that has an error. */
static void take_errors(struct ss_udp_out *out)
{
    struct ss_addr to;

    while (ss_sockopt_next_unreachable(out->fd, &to))
        ss_udp_upstream_refused(out->association, &to);
    uv_poll_start(&out->poll, UV_READABLE, ss_udp_out_readable);
}

void ss_udp_out_readable(uv_poll_t *poll, int status, int events)
{
    struct ss_udp_out *out = poll->data;
    struct ss_association *association = out->association;
    struct ss_udp_relay *relay = out->relay;
    struct ss_datagram got[SS_UDP_BATCH];
    bool upstream;

    (void)events;
    if (association == NULL)
        return;
    if (status != 0) {
        take_errors(out);
        return;
    }
    upstream = association->port->role->options.egress == SS_EGRESS_UPSTREAM && !out->direct;
    for (int i = 0; i < SS_UDP_BATCHES_MAX || ss_udp_holds_more(relay->inbox); i++) {
        size_t count = ss_udp_receive(relay->inbox, out->fd, got);

        if (upstream)
            ss_udp_foresee(relay, association->codec, got, count);
        for (size_t k = 0; k < count; k++) {
            if (upstream)
                from_upstream(association, &got[k]);
            else
                from_target(association, &got[k]);
        }
        ss_udp_flush(relay->outbox);
        if (count < SS_UDP_BATCH && !ss_udp_holds_more(relay->inbox))
            break;
    }
}
