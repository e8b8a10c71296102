/* IP addresses, and addresses with a port, apart from any socket structure. */
#ifndef SS_BASE_ADDR_H
#define SS_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum ss_family { SS_FAMILY_NONE = 0, SS_FAMILY_IPV4 = 4, SS_FAMILY_IPV6 = 6 };

struct ss_ip {
    uint8_t family;    /* enum ss_family */
    uint8_t bytes[16]; /* 4 or 16 of them count, network order */
    uint32_t scope;    /* IPv6 zone index, 0 when none */
};

/* An IP address and a port, in host order. */
struct ss_addr {
    struct ss_ip ip;
    uint16_t port;
};

#define SS_HOST_MAX 255 /* bytes of a host name, without the NUL */

/* A host as a person writes it, a name or an address, and a port (0: none was given). */
struct ss_endpoint {
    char host[SS_HOST_MAX + 1];
    uint16_t port;
};

#define SS_IP_TEXT_MAX   64 /* with a zone and the NUL */
#define SS_ADDR_TEXT_MAX 72 /* with brackets, port and the NUL */

#define SS_ENDPOINT_TEXT_MAX (SS_HOST_MAX + 9) /* the same */

/*
 * Reads the text of an IPv4 or IPv6 address, no brackets, with an optional zone (fe80::1%eth0, the
 * name or number of an interface). SS_OK or SS_ERR_FORMAT. IPv4 is four decimal numbers; the short
 * and octal forms of old resolvers are refused.
 */
SS_CHECKED enum ss_status ss_ip_parse(struct ss_ip *ip, const char *text);

/* Writes the shortest text (RFC 5952), a zone as a number, into `text` of SS_IP_TEXT_MAX bytes;
 * returns `text`. No address is "?". */
const char *ss_ip_format(const struct ss_ip *ip, char *text);

/* "192.0.2.1:80", "[2001:db8::1]:80" into `text` of SS_ADDR_TEXT_MAX bytes; returns `text`. */
const char *ss_addr_format(const struct ss_addr *addr, char *text);

/* Turns ::ffff:a.b.c.d into the IPv4 address that it stands for; leaves others alone. */
void ss_ip_unmap(struct ss_ip *ip);

bool ss_ip_equal(const struct ss_ip *a, const struct ss_ip *b);

/* 0.0.0.0 or :: */
bool ss_ip_is_any(const struct ss_ip *ip);

/*
 * Splits `host`, `host:port`, `1.2.3.4:port`, `::1`, `[::1]` or `[::1]:port` as the classic suite
 * does: a text that is an address as a whole is the host; else the last colon splits, and with more
 * than one colon a port exists only behind a `]`. Brackets around a host are taken off.
 * SS_ERR_FORMAT for a host that is empty, over-long or holds a blank, a control byte or another
 * bracket, or a port that is not 1 to 65535.
 */
SS_CHECKED enum ss_status ss_endpoint_parse(struct ss_endpoint *endpoint, const char *text);

/* With the port, and brackets around the text of an IPv6 address, into `text` of
 * SS_ENDPOINT_TEXT_MAX bytes; returns `text`. */
const char *ss_endpoint_format(const struct ss_endpoint *endpoint, char *text);

/* The same text and port. */
bool ss_endpoint_equal(const struct ss_endpoint *a, const struct ss_endpoint *b);

/* Whether `name` may be given to a resolver: 1 to 255 bytes, labels of 1 to 63, a dot at the end or
 * not, and in it neither blanks, control bytes nor bytes above ASCII. */
bool ss_host_is_valid(const char *name, size_t len);

#endif
