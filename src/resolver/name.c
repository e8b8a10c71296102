/* Names as they are compared, and those whose addresses are known beforehand. */
#include "resolver/name.h"

#include <string.h>

bool ss_name_read(char *out, const char *name)
{
    size_t len = strnlen(name, SS_HOST_MAX + 1);

    /* A backslash would begin an escape in c-ares and could hide the final dot. */
    if (len > SS_HOST_MAX || !ss_host_is_valid(name, len) || memchr(name, '\\', len) != NULL)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    if (len > 1 && out[len - 1] == '.')
        len--;
    out[len] = '\0';
    return true;
}

static bool is_localhost(const char *name)
{
    const char suffix[] = ".localhost";
    const size_t len = strlen(name), suffix_len = sizeof suffix - 1;

    if (strcmp(name, suffix + 1) == 0)
        return true;
    return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

size_t ss_name_known(const char *name, struct ss_ip *ips)
{
    if (ss_ip_parse(&ips[0], name) == SS_OK)
        return 1;
    if (is_localhost(name)) {
        ips[0] = (struct ss_ip){.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}};
        ips[1] = (struct ss_ip){.family = SS_FAMILY_IPV6, .bytes = {[15] = 1}};
        return 2;
    }
    return 0;
}
