/* UDP ports: opened and closed with all that they need. */
#include <stdlib.h>
#include <string.h>

#include "codec/packet.h"
#include "net/socket.h"
#include "relay/engine_internal.h"
#include "relay/session.h"
#include "relay/udp_relay.h"

/* Sessions are remembered so that no packet is taken twice, longer than their sockets stay. */
#define SESSIONS_AN_ASSOCIATION 4

/* Bytes that a port's buffers hold while the loop is busy: bursts of all clients come here. */
#define PORT_BURST (4 << 20)

static enum ss_status fill_relay(struct ss_udp_relay *relay)
{
    struct ss_engine *engine = relay->engine;
    enum ss_status status;

    relay->worker = &engine->workers[0];
    relay->inbox = ss_udp_inbox_new();
    relay->outbox = ss_udp_outbox_new();
    relay->foreseen = ss_packet_foreseen_new();
    relay->scratch_len = SS_UDP_HEADROOM + SS_UDP_PAYLOAD_MAX + SS_UDP_TAILROOM;
    relay->scratch = malloc(relay->scratch_len);
    if (relay->inbox == NULL || relay->outbox == NULL || relay->foreseen == NULL ||
        relay->scratch == NULL)
        return SS_ERR_MEMORY;
    status = ss_associations_init(&relay->associations, engine->max_associations,
                                  engine->options.udp_timeout_ms, engine->options.packet_link_size);
    if (status == SS_OK)
        status = ss_controls_init(&relay->controls, engine->pool_sessions);
    return status;
}

static enum ss_status relay_new(struct ss_engine *engine, const char **error_text)
{
    struct ss_udp_relay *relay;
    enum ss_status status;

    if (engine->max_associations == 0 && ss_engine_reserve_udp(engine) != SS_OK) {
        if (error_text != NULL)
            *error_text = "connections have the descriptors that UDP needs; a restart shares them";
        return SS_ERR_LIMIT;
    }
    relay = calloc(1, sizeof *relay);
    if (relay == NULL)
        return SS_ERR_MEMORY;
    relay->engine = engine;
    status = fill_relay(relay);
    if (status == SS_OK)
        engine->udp = relay;
    else
        ss_udp_relay_free(relay);
    return status;
}

/* *codec is NULL where there is no profile to speak by. */
static enum ss_status make_codec(struct ss_packet_codec **codec, struct ss_udp_relay *relay,
                                 const struct ss_profile *profile, enum ss_codec_role role)
{
    enum ss_status status;
    size_t size;

    *codec = NULL;
    if (profile == NULL)
        return SS_OK;
    if (ss_packet_link_size(profile) > relay->engine->options.packet_link_size)
        return SS_ERR_ARGUMENT; /* associations have no room for it */
    if (ss_packet_link_size(profile) != 0 && role == SS_CODEC_SERVER && relay->sessions == NULL) {
        relay->sessions =
            ss_packet_sessions_new(SESSIONS_AN_ASSOCIATION * relay->engine->max_associations);
        if (relay->sessions == NULL)
            return SS_ERR_MEMORY;
    }
    size = ss_packet_codec_size(profile);
    *codec = aligned_alloc(SS_AEAD_CONTEXT_ALIGN, size);
    if (*codec == NULL)
        return SS_ERR_MEMORY;
    memset(*codec, 0, size);
    status = ss_packet_codec_begin(*codec, profile, role);
    if (status == SS_OK && ss_packet_link_size(profile) != 0 && role == SS_CODEC_SERVER)
        ss_packet_codec_set_sessions(*codec, relay->sessions);
    return status;
}

static void free_codec(struct ss_packet_codec *codec)
{
    if (codec != NULL)
        ss_packet_codec_retire(codec);
    free(codec);
}

/* What a role makes of a port: replaced whole. */
struct ends {
    struct ss_packet_codec *codec;
    struct ss_udp_server *servers;
    size_t server_count;
    uint8_t address[SS_TARGET_MAX];
    size_t address_len;
};

static void free_ends(struct ends *ends)
{
    free_codec(ends->codec);
    for (size_t i = 0; i < ends->server_count; i++)
        if (ends->servers[i].owns_codec)
            free_codec(ends->servers[i].codec);
    free(ends->servers);
}

/* The codec of a method and key that the port has already, with associations in the midst of it. */
static struct ss_packet_codec *codec_before(const struct ss_udp_port *port,
                                            const struct ss_profile *profile)
{
    for (size_t i = 0; i < port->server_count; i++)
        if (port->role->options.upstreams[i].profile == profile)
            return port->servers[i].codec;
    return NULL;
}

/* Servers with the same method and key share a codec. */
static enum ss_status add_server(struct ends *ends, const struct ss_udp_port *port,
                                 const struct ss_upstream *upstreams)
{
    size_t index = ends->server_count++;
    struct ss_udp_server *server = &ends->servers[index];
    const struct ss_endpoint *endpoint = &upstreams[index].endpoint;

    server->has_sessions = ss_packet_link_size(upstreams[index].profile) != 0;
    if (ss_ip_parse(&server->addr.ip, endpoint->host) == SS_OK)
        server->addr.port = endpoint->port;
    else
        server->addr = (struct ss_addr){0};
    for (size_t i = 0; i < index; i++) {
        if (upstreams[i].profile != upstreams[index].profile)
            continue;
        server->codec = ends->servers[i].codec;
        return SS_OK;
    }
    server->codec = codec_before(port, upstreams[index].profile);
    server->takes_codec = server->codec != NULL;
    server->owns_codec = !server->takes_codec;
    return server->takes_codec
               ? SS_OK
               : make_codec(&server->codec, port->relay, upstreams[index].profile, SS_CODEC_CLIENT);
}

/* To be freed also after a failure. */
static enum ss_status make_ends(struct ends *ends, const struct ss_udp_port *port,
                                const struct ss_role *role)
{
    const struct ss_role_options *options = &role->options;
    struct ss_writer out = {.ptr = ends->address, .len = sizeof ends->address};
    enum ss_status status = SS_OK;

    *ends = (struct ends){0};
    if (options->ingress == SS_INGRESS_FIXED) {
        status = ss_target_write(&out, options->fixed_target);
        ends->address_len = sizeof ends->address - out.len;
    }
    if (status == SS_OK && options->ingress == SS_INGRESS_SHADOWSOCKS)
        status = make_codec(&ends->codec, port->relay, options->profile, SS_CODEC_SERVER);
    if (status != SS_OK || options->egress != SS_EGRESS_UPSTREAM)
        return status;
    ends->servers = calloc(options->upstream_count, sizeof *ends->servers);
    if (ends->servers == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; status == SS_OK && i < options->upstream_count; i++)
        status = add_server(ends, port, options->upstreams);
    return status;
}

/* From here on a codec that was taken belongs to the new ends. */
static void take_codecs(struct ends *ends, struct ss_udp_port *port)
{
    for (size_t i = 0; i < ends->server_count; i++) {
        struct ss_udp_server *server = &ends->servers[i];

        for (size_t k = 0; server->takes_codec && k < port->server_count; k++)
            if (port->servers[k].codec == server->codec)
                port->servers[k].owns_codec = false;
        server->owns_codec = server->owns_codec || server->takes_codec;
        server->takes_codec = false;
    }
}

/* Hands over; what the port had is in *ends then. */
static void exchange_ends(struct ss_udp_port *port, struct ends *ends, const struct ss_role *role)
{
    const struct ends old = {
        .codec = port->codec, .servers = port->servers, .server_count = port->server_count};

    port->codec = ends->codec;
    port->has_sessions = ends->codec != NULL && ss_packet_link_size(role->options.profile) != 0;
    port->servers = ends->servers;
    port->server_count = ends->server_count;
    memcpy(port->address, ends->address, ends->address_len);
    port->address_len = ends->address_len;
    *ends = old;
}

static void drop_ends(struct ss_udp_port *port)
{
    struct ends none = {0};

    exchange_ends(port, &none, NULL);
    free_ends(&none);
}

/* A role that takes the place of another. */
struct change {
    const struct ss_udp_port *port;
    const struct ss_role_options *before, *now;
};

/* Whether it ends with its server, or its place in the list is another one. */
static bool loses_its_server(struct ss_association *association, const void *owner)
{
    const struct change *change = owner;
    const struct ss_upstream *had;

    if (association->port != change->port)
        return false;
    had = &change->before->upstreams[association->upstream];
    for (size_t i = 0; i < change->now->upstream_count; i++) {
        const struct ss_upstream *upstream = &change->now->upstreams[i];

        if (upstream->profile != had->profile ||
            !ss_endpoint_equal(&upstream->endpoint, &had->endpoint))
            continue;
        association->upstream = (uint8_t)i;
        return false;
    }
    return true;
}

/* Those that can't go on under the new role end. */
static void change_associations(struct ss_udp_port *port, const struct ss_role *role)
{
    const struct change change = {
        .port = port, .before = &port->role->options, .now = &role->options};
    struct ss_associations *table = &port->relay->associations;
    bool same_target = change.before->ingress != SS_INGRESS_FIXED ||
                       ss_target_equal(change.before->fixed_target, change.now->fixed_target);

    if (same_target && change.before->egress == SS_EGRESS_UPSTREAM &&
        change.now->egress == SS_EGRESS_UPSTREAM)
        ss_associations_close_if(table, loses_its_server, &change);
    else
        ss_associations_close_of(table, port);
}

/* Whether the port needs nothing else for the other one. */
static bool serves_alike(const struct ss_role *one, const struct ss_role *other)
{
    const struct ss_role_options *a = &one->options, *b = &other->options;

    if (a->profile != b->profile || a->egress != b->egress ||
        a->upstream_count != b->upstream_count)
        return false;
    for (size_t i = 0; i < a->upstream_count; i++)
        if (a->upstreams[i].profile != b->upstreams[i].profile ||
            !ss_endpoint_equal(&a->upstreams[i].endpoint, &b->upstreams[i].endpoint))
            return false;
    return a->ingress != SS_INGRESS_FIXED || ss_target_equal(a->fixed_target, b->fixed_target);
}

enum ss_status ss_udp_port_set_role(struct ss_udp_port *port, struct ss_role *role)
{
    enum ss_status status;
    struct ends ends;

    if (role->options.ingress != port->role->options.ingress)
        return SS_ERR_ARGUMENT;
    if (!serves_alike(port->role, role)) {
        status = make_ends(&ends, port, role);
        if (status == SS_OK) {
            change_associations(port, role);
            take_codecs(&ends, port);
            exchange_ends(port, &ends, role);
        }
        free_ends(&ends);
        if (status != SS_OK)
            return status;
    }
    if (role->options.acl != port->role->options.acl)
        ss_associations_forget_names_of(&port->relay->associations, port);
    ss_upstream_names_watch(port->relay->engine->upstream_names, role);
    ss_role_hold(role);
    ss_role_release(port->role);
    port->role = role;
    return SS_OK;
}

enum ss_status ss_engine_listen_udp(struct ss_engine *engine,
                                    const struct ss_listener_options *options,
                                    struct ss_udp_port **out, const char **error_text)
{
    bool redirected = options->role->options.ingress == SS_INGRESS_REDIRECT;
    const struct ss_udp_socket_options how = {
        .binder = engine->options.binder,
        .ipv6_only = options->ipv6_only,
        .reuse_port = options->reuse_port,
        .wants_local = !redirected && ss_ip_is_any(&options->address.ip),
        .transparent = redirected,
        .wants_original = redirected,
        .dont_fragment = engine->options.mtu != 0,
        .burst = PORT_BURST,
        .sndbuf = options->incoming_sndbuf,
        .rcvbuf = options->incoming_rcvbuf,
    };
    struct ss_udp_port *port = calloc(1, sizeof *port);
    enum ss_status status = SS_ERR_MEMORY;
    struct ends ends;

    if (out != NULL)
        *out = NULL;
    if (port == NULL)
        return SS_ERR_MEMORY;
    port->fd = -1;
    port->family = options->address.ip.family;
    port->reuse_port = options->reuse_port;
    port->counters = aligned_alloc(_Alignof(struct ss_counters), sizeof *port->counters);
    if (port->counters == NULL)
        goto failed;
    memset(port->counters, 0, sizeof *port->counters);
    if (engine->udp == NULL) {
        status = relay_new(engine, error_text);
        if (status != SS_OK)
            goto failed;
    }
    port->relay = engine->udp;
    status = make_ends(&ends, port, options->role);
    exchange_ends(port, &ends, options->role);
    if (status == SS_OK && !ss_engine_has_room_for_socket(engine))
        status = SS_ERR_LIMIT;
    if (status == SS_OK)
        status = ss_udp_open(&port->fd, &options->address, &how, error_text);
    if (status != SS_OK)
        goto failed;
    ss_socket_local(port->fd, &port->bound);
    status = ss_engine_guard(engine, options->role, true, port->bound.port);
    if (status == SS_OK && redirected && engine->udp->answers == NULL)
        status =
            ss_udp_answers_new(&engine->udp->answers, engine->udp,
                               engine->options.max_answers != 0 ? engine->options.max_answers : 1);
    if (status != SS_OK)
        goto failed;
    status = SS_ERR_MEMORY;
    if (uv_poll_init(&engine->workers[0].loop, &port->poll, port->fd) != 0)
        goto failed;
    port->poll.data = port;
    port->role = ss_role_hold(options->role);
    ss_upstream_names_watch(engine->upstream_names, port->role);
    uv_poll_start(&port->poll, UV_READABLE, ss_udp_port_readable);
    port->next = port->relay->ports;
    port->relay->ports = port;
    ss_engine_socket_opened(engine);
    ss_engine_match_udp(engine);
    if (out != NULL)
        *out = port;
    return SS_OK;

failed:
    ss_socket_close(port->fd);
    drop_ends(port);
    free(port->counters);
    free(port);
    return status;
}

struct ss_udp_port *ss_udp_port_beside(struct ss_udp_relay *relay, const struct ss_addr *listener)
{
    struct ss_udp_port *port = relay == NULL ? NULL : relay->ports;

    while (port != NULL &&
           !(port->role->options.ingress == SS_INGRESS_SOCKS5 &&
             port->bound.port == listener->port && ss_ip_equal(&port->bound.ip, &listener->ip)))
        port = port->next;
    return port;
}

static void free_port(struct ss_udp_port *port)
{
    drop_ends(port);
    ss_role_release(port->role);
    free(port->counters);
    free(port);
}

static void on_removed(uv_handle_t *handle)
{
    free_port(handle->data);
}

void ss_engine_unlisten_udp(struct ss_engine *engine, struct ss_udp_port *port)
{
    struct ss_udp_port **link = &engine->udp->ports;

    while (*link != port)
        link = &(*link)->next;
    *link = port->next;
    ss_associations_close_of(&engine->udp->associations, port);
    ss_udp_answers_close(engine->udp->answers, port);
    ss_sessions_end_associate(engine->udp->worker, &port->bound);
    ss_engine_match_udp(engine);
    ss_engine_socket_closed(engine);
    ss_engine_keep_traffic(engine, port->counters, 1);
    ss_udp_flush(engine->udp->outbox); /* its descriptor's number may be another's soon */
    uv_close((uv_handle_t *)&port->poll, on_removed);
    ss_socket_close(port->fd);
}

void ss_udp_relay_close(struct ss_udp_relay *relay)
{
    if (relay == NULL)
        return;
    ss_associations_close_all(&relay->associations);
    ss_udp_answers_close(relay->answers, NULL);
    for (struct ss_udp_port *port = relay->ports; port != NULL; port = port->next) {
        uv_close((uv_handle_t *)&port->poll, NULL);
        ss_socket_close(port->fd);
    }
}

void ss_udp_relay_expire(struct ss_udp_relay *relay, uint64_t now_ms)
{
    ss_associations_expire(&relay->associations, now_ms);
    ss_udp_answers_expire(relay->answers, now_ms);
}

uint64_t ss_udp_relay_due_ms(struct ss_udp_relay *relay)
{
    const struct ss_deadline *first = ss_deadline_first(&relay->associations.idle);
    uint64_t answers_ms = ss_udp_answers_due_ms(relay->answers);

    if (first == NULL || (answers_ms != 0 && answers_ms < first->due_ms))
        return answers_ms;
    return first->due_ms;
}

void ss_udp_relay_free(struct ss_udp_relay *relay)
{
    if (relay == NULL)
        return;
    while (relay->ports != NULL) {
        struct ss_udp_port *port = relay->ports;

        relay->ports = port->next;
        free_port(port);
    }
    ss_packet_sessions_free(relay->sessions);
    ss_associations_clear(&relay->associations);
    ss_udp_answers_free(relay->answers);
    ss_controls_clear(&relay->controls);
    ss_udp_inbox_free(relay->inbox);
    ss_udp_outbox_free(relay->outbox);
    ss_packet_foreseen_free(relay->foreseen);
    free(relay->scratch);
    free(relay);
}
