/* Targets: ATYP, address and port, from and to the wire. */
#include "proto/target.h"

#include <stdio.h>
#include <string.h>

/* Whether `name` could be sent. No resolver takes a NUL, a blank or a control byte, and in a log or
 * a rule they would pass for something else. */
static bool is_sendable_name(const char *name, size_t len)
{
    if (len == 0 || len > SS_HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
            return false;
    return true;
}

enum ss_status ss_target_read(struct ss_reader *in, struct ss_target *target)
{
    struct ss_reader r = *in;
    struct ss_target t = {0};
    uint8_t name_len;

    if (!ss_read_u8(&r, &t.atyp))
        return SS_NEED_INPUT;

    switch (t.atyp) {
    case SS_ATYP_IPV4:
        if (!ss_read_bytes(&r, t.ip, 4))
            return SS_NEED_INPUT;
        break;
    case SS_ATYP_IPV6:
        if (!ss_read_bytes(&r, t.ip, 16))
            return SS_NEED_INPUT;
        break;
    case SS_ATYP_NAME: /* t.name holds 255 bytes and a NUL */
        if (!ss_read_u8(&r, &name_len))
            return SS_NEED_INPUT;
        if (name_len == 0)
            return SS_ERR_FORMAT;
        if (!ss_read_bytes(&r, t.name, name_len))
            return SS_NEED_INPUT;
        if (!is_sendable_name(t.name, name_len))
            return SS_ERR_FORMAT;
        break;
    default:
        return SS_ERR_FORMAT;
    }
    if (!ss_read_u16be(&r, &t.port))
        return SS_NEED_INPUT;

    *in = r;
    *target = t;
    return SS_OK;
}

enum ss_status ss_target_write(struct ss_writer *out, const struct ss_target *target)
{
    struct ss_writer w = *out;
    size_t name_len;
    bool fits = ss_write_u8(&w, target->atyp);

    switch (target->atyp) {
    case SS_ATYP_IPV4:
        fits = fits && ss_write_bytes(&w, target->ip, 4);
        break;
    case SS_ATYP_IPV6:
        fits = fits && ss_write_bytes(&w, target->ip, 16);
        break;
    case SS_ATYP_NAME:
        name_len = strlen(target->name);
        if (name_len == 0)
            return SS_ERR_ARGUMENT;
        fits = fits && ss_write_u8(&w, (uint8_t)name_len) &&
               ss_write_bytes(&w, target->name, name_len);
        break;
    default:
        return SS_ERR_ARGUMENT;
    }
    if (!fits || !ss_write_u16be(&w, target->port))
        return SS_NEED_ROOM;

    *out = w;
    return SS_OK;
}

enum ss_status ss_target_from_host(struct ss_target *target, const char *host, uint16_t port)
{
    struct ss_addr addr = {.port = port};
    size_t len = strlen(host);

    /* A zone has no place in an address on the wire, and means something only where it is used. */
    if (strchr(host, '%') == NULL && ss_ip_parse(&addr.ip, host) == SS_OK) {
        ss_target_from_addr(target, &addr);
        return SS_OK;
    }
    if (!is_sendable_name(host, len))
        return SS_ERR_FORMAT;
    memset(target, 0, sizeof *target);
    target->atyp = SS_ATYP_NAME;
    target->port = port;
    memcpy(target->name, host, len + 1);
    return SS_OK;
}

void ss_target_from_addr(struct ss_target *target, const struct ss_addr *addr)
{
    memset(target, 0, sizeof *target);
    target->port = addr->port;
    if (addr->ip.family == SS_FAMILY_IPV6) {
        target->atyp = SS_ATYP_IPV6;
        memcpy(target->ip, addr->ip.bytes, 16);
    } else { /* no address at all is 0.0.0.0 */
        target->atyp = SS_ATYP_IPV4;
        if (addr->ip.family == SS_FAMILY_IPV4)
            memcpy(target->ip, addr->ip.bytes, 4);
    }
}

/* The address of a target that is one, as it stands there. */
static bool literal_ip(const struct ss_target *target, struct ss_ip *ip)
{
    memset(ip, 0, sizeof *ip);
    switch (target->atyp) {
    case SS_ATYP_IPV4:
        ip->family = SS_FAMILY_IPV4;
        memcpy(ip->bytes, target->ip, 4);
        return true;
    case SS_ATYP_IPV6:
        ip->family = SS_FAMILY_IPV6;
        memcpy(ip->bytes, target->ip, 16);
        return true;
    default:
        return false;
    }
}

bool ss_target_ip(const struct ss_target *target, struct ss_ip *ip)
{
    if (!literal_ip(target, ip) && ss_ip_parse(ip, target->name) != SS_OK)
        return false;
    ss_ip_unmap(ip);
    return true;
}

bool ss_target_equal(const struct ss_target *one, const struct ss_target *other)
{
    if (one->atyp != other->atyp || one->port != other->port)
        return false;
    switch (one->atyp) {
    case SS_ATYP_NAME:
        return strcmp(one->name, other->name) == 0;
    case SS_ATYP_IPV4:
        return memcmp(one->ip, other->ip, 4) == 0;
    default:
        return memcmp(one->ip, other->ip, sizeof one->ip) == 0;
    }
}

const char *ss_target_format(const struct ss_target *target, char *text)
{
    struct ss_addr addr = {.port = target->port};

    if (literal_ip(target, &addr.ip)) {
        char numbers[SS_ADDR_TEXT_MAX];

        snprintf(text, SS_TARGET_TEXT_MAX, "%s", ss_addr_format(&addr, numbers));
    } else {
        const char *form = strchr(target->name, ':') != NULL ? "[]" : "";

        snprintf(text, SS_TARGET_TEXT_MAX, "%.1s%s%s:%u", form, target->name,
                 form[0] == '\0' ? "" : form + 1, target->port);
    }
    return text;
}
