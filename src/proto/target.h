/* Where a client wants to go: ATYP, address and port (RFC 1928 section 5; SIP004). */
#ifndef SS_PROTO_TARGET_H
#define SS_PROTO_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/bytes.h"
#include "base/status.h"

enum ss_atyp { SS_ATYP_IPV4 = 1, SS_ATYP_NAME = 3, SS_ATYP_IPV6 = 4 };

#define SS_TARGET_MAX 259 /* bytes on the wire: ATYP, length, 255 of a name, port */

struct ss_target {
    uint8_t atyp;
    uint8_t ip[16];
    uint16_t port;
    char name[SS_HOST_MAX + 1]; /* NUL-terminated; only for SS_ATYP_NAME */
};

/*
 * Reads one target and steps over it, or consumes nothing: SS_NEED_INPUT when it is cut,
 * SS_ERR_FORMAT for another ATYP, an empty name, or a name with a NUL, a blank or another control
 * byte in it. A name that is the text of an address is left as it came; ss_target_ip tells.
 */
SS_CHECKED enum ss_status ss_target_read(struct ss_reader *in, struct ss_target *target);

/* Writes it. SS_NEED_ROOM, and SS_ERR_ARGUMENT for what is no target, leave `out` alone. */
SS_CHECKED enum ss_status ss_target_write(struct ss_writer *out, const struct ss_target *target);

/*
 * A literal address becomes that address; anything else, also an address with a zone (which has no
 * form on the wire), a name. SS_ERR_FORMAT when ss_target_read would refuse it.
 */
SS_CHECKED enum ss_status ss_target_from_host(struct ss_target *target, const char *host,
                                              uint16_t port);
void ss_target_from_addr(struct ss_target *target, const struct ss_addr *addr);

/* True and the address when the target is an address or a name that is the text of one. IPv4-mapped
 * addresses come out as IPv4. */
bool ss_target_ip(const struct ss_target *target, struct ss_ip *ip);

/* Whether both are the same on the wire. */
bool ss_target_equal(const struct ss_target *one, const struct ss_target *other);

#define SS_TARGET_TEXT_MAX (SS_HOST_MAX + 10)

/* "example.test:80", "[::1]:80", as logs show it; returns `text`. */
const char *ss_target_format(const struct ss_target *target, char *text);

#endif
