/* Text of addresses and endpoints, read strictly and written in the shortest form. */
#include "base/addr.h"

#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>

#define IPV6_TEXT_MAX 46 /* the longest form, with an IPv4 tail and the NUL */

/* Digits only, no sign and no blank; false when the number is above `max`. */
static bool parse_number(const char *text, size_t len, uint32_t max, uint32_t *value)
{
    uint64_t sum = 0;

    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        sum = sum * 10 + (uint64_t)(text[i] - '0');
        if (sum > max)
            return false;
    }
    *value = (uint32_t)sum;
    return true;
}

/* The index of a zone named by number or by the interface of this machine; false when there is
 * none. */
static bool parse_zone(const char *zone, uint32_t *scope)
{
    size_t len = strlen(zone);

    if (len == 0 || len >= IF_NAMESIZE)
        return false;
    if (!parse_number(zone, len, UINT32_MAX, scope))
        *scope = if_nametoindex(zone);
    return *scope != 0;
}

enum ss_status ss_ip_parse(struct ss_ip *ip, const char *text)
{
    struct ss_ip parsed = {0};
    char address[IPV6_TEXT_MAX];
    const char *zone = strchr(text, '%');
    size_t len = zone != NULL ? (size_t)(zone - text) : strlen(text);

    if (len == 0 || len >= sizeof address)
        return SS_ERR_FORMAT;
    memcpy(address, text, len);
    address[len] = '\0';

    if (strchr(address, ':') != NULL) {
        parsed.family = SS_FAMILY_IPV6;
        if (inet_pton(AF_INET6, address, parsed.bytes) != 1)
            return SS_ERR_FORMAT;
        if (zone != NULL && !parse_zone(zone + 1, &parsed.scope))
            return SS_ERR_FORMAT;
    } else {
        parsed.family = SS_FAMILY_IPV4;
        if (zone != NULL || inet_pton(AF_INET, address, parsed.bytes) != 1)
            return SS_ERR_FORMAT;
    }
    *ip = parsed;
    return SS_OK;
}

const char *ss_ip_format(const struct ss_ip *ip, char *text)
{
    char address[IPV6_TEXT_MAX] = "?";

    if (ip->family == SS_FAMILY_IPV4)
        (void)inet_ntop(AF_INET, ip->bytes, address, sizeof address);
    else if (ip->family == SS_FAMILY_IPV6)
        (void)inet_ntop(AF_INET6, ip->bytes, address, sizeof address);

    if (ip->family == SS_FAMILY_IPV6 && ip->scope != 0)
        snprintf(text, SS_IP_TEXT_MAX, "%s%%%lu", address, (unsigned long)ip->scope);
    else
        snprintf(text, SS_IP_TEXT_MAX, "%s", address);
    return text;
}

const char *ss_addr_format(const struct ss_addr *addr, char *text)
{
    char ip[SS_IP_TEXT_MAX];
    bool brackets = addr->ip.family == SS_FAMILY_IPV6;

    snprintf(text, SS_ADDR_TEXT_MAX, brackets ? "[%s]:%u" : "%s:%u", ss_ip_format(&addr->ip, ip),
             addr->port);
    return text;
}

void ss_ip_unmap(struct ss_ip *ip)
{
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct ss_ip plain = {.family = SS_FAMILY_IPV4};

    if (ip->family != SS_FAMILY_IPV6 || memcmp(ip->bytes, prefix, sizeof prefix) != 0)
        return;
    memcpy(plain.bytes, ip->bytes + sizeof prefix, 4);
    *ip = plain;
}

bool ss_ip_equal(const struct ss_ip *a, const struct ss_ip *b)
{
    if (a->family != b->family)
        return false;
    if (a->family == SS_FAMILY_IPV4)
        return memcmp(a->bytes, b->bytes, 4) == 0;
    if (a->family == SS_FAMILY_IPV6)
        return memcmp(a->bytes, b->bytes, 16) == 0 && a->scope == b->scope;
    return true;
}

bool ss_ip_is_any(const struct ss_ip *ip)
{
    static const uint8_t zeros[16] = {0};

    if (ip->family == SS_FAMILY_IPV4)
        return memcmp(ip->bytes, zeros, 4) == 0;
    return ip->family == SS_FAMILY_IPV6 && memcmp(ip->bytes, zeros, 16) == 0;
}

/* Copies a host without the brackets around it; false when it could be no host. */
static bool take_host(struct ss_endpoint *endpoint, const char *host, size_t len)
{
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    if (len == 0 || len > SS_HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)host[i];

        if (c <= ' ' || c == 0x7f || c == '[' || c == ']')
            return false;
    }
    memcpy(endpoint->host, host, len);
    endpoint->host[len] = '\0';
    return true;
}

enum ss_status ss_endpoint_parse(struct ss_endpoint *endpoint, const char *text)
{
    struct ss_endpoint parsed = {.port = 0};
    struct ss_ip ip;
    size_t host_len = strlen(text);
    const char *colon = strrchr(text, ':');
    bool has_port = false;

    if (ss_ip_parse(&ip, text) != SS_OK && colon != NULL)
        has_port = strchr(text, ':') == colon || colon[-1] == ']';
    if (has_port) {
        uint32_t port;

        if (!parse_number(colon + 1, strlen(colon + 1), UINT16_MAX, &port) || port == 0)
            return SS_ERR_FORMAT;
        parsed.port = (uint16_t)port;
        host_len = (size_t)(colon - text);
    }
    if (!take_host(&parsed, text, host_len))
        return SS_ERR_FORMAT;
    *endpoint = parsed;
    return SS_OK;
}

bool ss_host_is_valid(const char *name, size_t len)
{
    size_t label_len = 0;

    if (len == 0 || len > SS_HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];

        if (c <= ' ' || c >= 0x7f)
            return false;
        if (c != '.') {
            if (++label_len > 63)
                return false;
        } else {
            if (label_len == 0)
                return false;
            label_len = 0; /* the dot at the end of a complete name leaves no label behind it */
        }
    }
    return true;
}

const char *ss_endpoint_format(const struct ss_endpoint *endpoint, char *text)
{
    bool bracket = strchr(endpoint->host, ':') != NULL;

    snprintf(text, SS_ENDPOINT_TEXT_MAX, "%s%s%s:%u", bracket ? "[" : "", endpoint->host,
             bracket ? "]" : "", endpoint->port);
    return text;
}

bool ss_endpoint_equal(const struct ss_endpoint *a, const struct ss_endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}
