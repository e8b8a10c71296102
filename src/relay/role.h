/*
 * A role: what is done with the clients of a listening address. It is immutable and counted by its
 * holders (the listener, and each session from accept to end), so a reload replaces it whole while
 * sessions keep the one they began with.
 */
#ifndef SS_RELAY_ROLE_H
#define SS_RELAY_ROLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"
#include "codec/profile.h"
#include "proto/target.h"
#include "relay/limiter.h"
#include "relay/upstreams.h"

/* Where a session's target comes from. */
enum ss_ingress_kind {
    SS_INGRESS_SOCKS5,      /* the client's request */
    SS_INGRESS_FIXED,       /* configured */
    SS_INGRESS_SHADOWSOCKS, /* the opened header */
    SS_INGRESS_REDIRECT,    /* where the system's rules took it from */
};

/* How its target is reached. */
enum ss_egress_kind {
    SS_EGRESS_DIRECT,
    SS_EGRESS_UPSTREAM, /* through a Shadowsocks server */
};

struct ss_acl;

/* Who may use a SOCKS5 listener (RFC 1929). Texts are borrowed, NUL-terminated, 1 to 255 bytes. */
struct ss_socks5_user {
    const char *name, *password;
};

struct ss_role_options {
    enum ss_ingress_kind ingress;
    enum ss_egress_kind egress;
    const struct ss_profile *profile; /* of SS_INGRESS_SHADOWSOCKS; else NULL */
    const struct ss_target *fixed_target;
    const struct ss_upstream *upstreams; /* of SS_EGRESS_UPSTREAM: at least one */
    size_t upstream_count;
    enum ss_balance balance;
    const struct ss_socks5_user *users; /* with any, SOCKS5 clients must log in */
    size_t user_count;
    const struct ss_acl *acl;   /* SOCKS5 and SHADOWSOCKS; NULL: none */
    struct ss_limiter *limiter; /* SS_INGRESS_SHADOWSOCKS: of the port; NULL: it has no limits */
    bool udp_open;              /* SOCKS5: takes datagrams without an ASSOCIATE connection */
    const struct ss_endpoint *guarded; /* REDIRECT: servers, also those behind plugins, to which */
    size_t guarded_count;              /* nothing may lead that this machine sends */
    bool tproxy;                       /* REDIRECT, of TCP: by TPROXY instead of NAT */
    uint8_t tos;             /* the byte with the DSCP of what goes out; 0: the system's */
    struct ss_ip advertised; /* SOCKS5: told to ASSOCIATE; family 0: the address that was reached */

    /* Profiles are held. Everything else that is pointed to lives until this is called, once, by
     * any thread, when the last holder has let go. May be NULL. */
    void (*released)(void *owner);
    void *owner;
};

/* Read-only outside of role.c, but for what is atomic. */
struct ss_role {
    struct ss_role_options options;
    struct ss_upstream_set upstreams; /* how they are doing */
    _Atomic uint32_t holders;
};

/* Copies the options, not what they point to; the caller holds it. SS_ERR_MEMORY, SS_ERR_ARGUMENT
 * with too many upstream servers: then `released` is not called. */
SS_CHECKED enum ss_status ss_role_new(struct ss_role **out, const struct ss_role_options *options);

/* Whether clients see no difference: users of identity headers and lists of rules apart, which may
 * have changed in either. */
bool ss_role_is_alike(const struct ss_role *one, const struct ss_role *other);

struct ss_role *ss_role_hold(struct ss_role *role);
/* NULL is fine. */
void ss_role_release(struct ss_role *role);

#endif
