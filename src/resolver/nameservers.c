/* Lists of name servers: read, compared, written. */
#include "resolver/nameservers.h"

#include <stdio.h>
#include <string.h>

#define DNS_PORT 53

static bool add(struct ss_nameservers *servers, const char *text, size_t len)
{
    struct ss_endpoint endpoint;
    struct ss_addr *addr;
    char copy[SS_ADDR_TEXT_MAX];

    if (len >= sizeof copy || memchr(text, '\0', len) != NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    addr = &servers->list[servers->count];
    if (ss_endpoint_parse(&endpoint, copy) != SS_OK ||
        ss_ip_parse(&addr->ip, endpoint.host) != SS_OK)
        return false;
    addr->port = endpoint.port != 0 ? endpoint.port : DNS_PORT;
    servers->count++;
    return true;
}

enum ss_status ss_nameservers_read(struct ss_nameservers *servers, const char *list)
{
    servers->count = 0;
    while (*list != '\0') {
        const size_t len = strcspn(list, ", ");

        if (servers->count == SS_NAMESERVERS_MAX || !add(servers, list, len))
            return SS_ERR_ARGUMENT;
        list += len;
        list += strspn(list, ", ");
    }
    return servers->count != 0 ? SS_OK : SS_ERR_ARGUMENT;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static size_t blanks(const char *text, size_t len)
{
    size_t count = 0;

    while (count < len && is_blank(text[count]))
        count++;
    return count;
}

void ss_nameservers_read_resolv_conf(struct ss_nameservers *servers, const char *text, size_t len)
{
    static const char keyword[] = "nameserver";
    const size_t keyword_len = sizeof keyword - 1;

    servers->count = 0;
    while (len != 0 && servers->count < SS_NAMESERVERS_SYSTEM) {
        const char *end = memchr(text, '\n', len);
        const size_t line_len = end != NULL ? (size_t)(end - text) : len;

        if (line_len > keyword_len && memcmp(text, keyword, keyword_len) == 0 &&
            is_blank(text[keyword_len])) {
            size_t from = keyword_len + blanks(text + keyword_len, line_len - keyword_len);
            size_t to = from;

            while (to < line_len && !is_blank(text[to]) && text[to] != '#' && text[to] != ';')
                to++;
            (void)add(servers, text + from, to - from);
        }
        text += line_len + (end != NULL);
        len -= line_len + (end != NULL);
    }
}

bool ss_nameservers_equal(const struct ss_nameservers *a, const struct ss_nameservers *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->list[i].port != b->list[i].port || !ss_ip_equal(&a->list[i].ip, &b->list[i].ip))
            return false;
    }
    return true;
}

void ss_nameservers_format(const struct ss_nameservers *servers, bool zones,
                           char text[SS_NAMESERVERS_TEXT_MAX])
{
    char one[SS_ADDR_TEXT_MAX];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < servers->count; i++) {
        if (servers->list[i].ip.scope != 0 && !zones)
            continue;
        used += (size_t)snprintf(text + used, SS_NAMESERVERS_TEXT_MAX - used, "%s%s",
                                 used != 0 ? "," : "", ss_addr_format(&servers->list[i], one));
    }
}
