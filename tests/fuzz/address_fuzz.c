/* Text that is an address or an endpoint comes back the same when it is written and read again. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/addr.h"

#define TEXT_MAX 600

static void check_ip(const char *text)
{
    struct ss_ip ip, again;
    struct ss_addr addr = {.port = 8388};
    struct ss_endpoint endpoint;
    char shortest[SS_IP_TEXT_MAX], with_port[SS_ADDR_TEXT_MAX];

    if (ss_ip_parse(&ip, text) != SS_OK)
        return;
    ss_ip_format(&ip, shortest);
    CHECK(ss_ip_parse(&again, shortest) == SS_OK);
    CHECK(ss_ip_equal(&ip, &again));
    CHECK(ip.family == SS_FAMILY_IPV6 || strcmp(shortest, text) == 0); /* IPv4 has one form */
    CHECK(ip.family == SS_FAMILY_IPV6 || ip.scope == 0);

    /* An address alone is the host; with brackets and a port it is taken apart. */
    CHECK(ss_endpoint_parse(&endpoint, text) == SS_OK);
    CHECK(strcmp(endpoint.host, text) == 0 && endpoint.port == 0);
    addr.ip = ip;
    ss_addr_format(&addr, with_port);
    CHECK(ss_endpoint_parse(&endpoint, with_port) == SS_OK);
    CHECK(strcmp(endpoint.host, shortest) == 0 && endpoint.port == 8388);

    /* Unmapping twice is unmapping once, and what it yields has no zone of IPv6. */
    ss_ip_unmap(&ip);
    again = ip;
    ss_ip_unmap(&again);
    CHECK(ss_ip_equal(&ip, &again));
}

static void check_endpoint(const char *text)
{
    struct ss_endpoint endpoint, again;
    struct ss_ip ip;
    char written[SS_HOST_MAX + 16];
    size_t len;

    if (ss_endpoint_parse(&endpoint, text) != SS_OK)
        return;
    len = strlen(endpoint.host);
    CHECK(len >= 1 && len <= SS_HOST_MAX);
    CHECK(strstr(text, endpoint.host) != NULL);
    CHECK(strpbrk(endpoint.host, " []\t\r\n") == NULL);
    if (ss_ip_parse(&ip, endpoint.host) != SS_OK && !ss_host_is_valid(endpoint.host, len))
        return;

    /* In brackets any host may have a port behind it. */
    snprintf(written, sizeof written, "[%s]:%u", endpoint.host, 1u + endpoint.port % 65535u);
    CHECK(ss_endpoint_parse(&again, written) == SS_OK);
    CHECK(strcmp(again.host, endpoint.host) == 0);
    CHECK(again.port == 1u + endpoint.port % 65535u);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char text[TEXT_MAX];
    size_t text_len = len < sizeof text - 1 ? len : sizeof text - 1;

    memcpy(text, bytes, text_len);
    text[text_len] = '\0';
    check_ip(text);
    check_endpoint(text);

    if (ss_host_is_valid((const char *)bytes, len)) {
        CHECK(len >= 1 && len <= SS_HOST_MAX);
        CHECK(memchr(bytes, '\0', len) == NULL && memchr(bytes, ' ', len) == NULL);
        /* A name that is valid stays so without the dot at its end. */
        if (bytes[len - 1] == '.')
            CHECK(ss_host_is_valid((const char *)bytes, len - 1));
    }
    return 0;
}
