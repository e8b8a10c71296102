/*
 * SOCKS5 as a server speaks it (RFC 1928, RFC 1929): messages from and to bytes. Each read consumes
 * one whole message or nothing.
 */
#ifndef SS_PROTO_SOCKS5_H
#define SS_PROTO_SOCKS5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "proto/target.h"

enum ss_socks5_method {
    SS_SOCKS5_NO_AUTH = 0x00,
    SS_SOCKS5_PASSWORD = 0x02,
    SS_SOCKS5_NO_METHOD = 0xff
};

enum ss_socks5_command { SS_SOCKS5_CONNECT = 1, SS_SOCKS5_BIND = 2, SS_SOCKS5_UDP_ASSOCIATE = 3 };

enum ss_socks5_reply {
    SS_SOCKS5_OK = 0,
    SS_SOCKS5_FAILURE = 1,
    SS_SOCKS5_NOT_ALLOWED = 2,
    SS_SOCKS5_NETWORK_UNREACHABLE = 3,
    SS_SOCKS5_HOST_UNREACHABLE = 4,
    SS_SOCKS5_REFUSED = 5,
    SS_SOCKS5_TTL_EXPIRED = 6,
    SS_SOCKS5_NO_COMMAND = 7,
    SS_SOCKS5_NO_ATYP = 8
};

/* What a client offers. */
struct ss_socks5_greeting {
    bool no_auth;
    bool password;
};

/* SS_ERR_FORMAT at the first byte that is not version 5. */
SS_CHECKED enum ss_status ss_socks5_read_greeting(struct ss_reader *in,
                                                  struct ss_socks5_greeting *greeting);

struct ss_socks5_login {
    char user[256], password[256]; /* NUL-terminated; a NUL inside is SS_ERR_FORMAT */
};

SS_CHECKED enum ss_status ss_socks5_read_login(struct ss_reader *in, struct ss_socks5_login *login);

struct ss_socks5_request {
    uint8_t command; /* as sent; any value */
    struct ss_target target;
};

/*
 * SS_ERR_FORMAT for another version or a bad address; *refusal is then the reply to send, or
 * SS_SOCKS5_OK when the connection should be closed without one. An address type that is unknown is
 * reported as soon as it is seen (what follows it has no known length).
 */
SS_CHECKED enum ss_status ss_socks5_read_request(struct ss_reader *in,
                                                 struct ss_socks5_request *request,
                                                 enum ss_socks5_reply *refusal);

/* 05 and the method chosen. */
SS_CHECKED enum ss_status ss_socks5_write_choice(struct ss_writer *out,
                                                 enum ss_socks5_method method);
/* 01 and the status, 0 for success. */
SS_CHECKED enum ss_status ss_socks5_write_login_status(struct ss_writer *out, uint8_t status);
/* 05 REP 00 and the bound address; NULL is 0.0.0.0:0. */
SS_CHECKED enum ss_status ss_socks5_write_reply(struct ss_writer *out, enum ss_socks5_reply reply,
                                                const struct ss_addr *bound);

/*
 * The header of a relayed datagram: 00 00 FRAG, target. SS_ERR_FORMAT for a fragment or a bad
 * target, SS_NEED_INPUT for one that is too short.
 */
SS_CHECKED enum ss_status ss_socks5_read_udp(struct ss_reader *in, struct ss_target *target);

#endif
