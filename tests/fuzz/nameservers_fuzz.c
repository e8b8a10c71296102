/* Lists of name servers: what a resolv.conf or a setting holds is the same list when it is written
 * and read again, and what stands around the lines of a resolv.conf changes nothing. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "resolver/nameservers.h"

static void check_again(const struct ss_nameservers *servers)
{
    struct ss_nameservers again;
    char text[SS_NAMESERVERS_TEXT_MAX];

    for (size_t i = 0; i < servers->count; i++)
        CHECK(servers->list[i].port != 0);
    ss_nameservers_format(servers, true, text);
    if (servers->count == 0) {
        CHECK(text[0] == '\0');
        return;
    }
    CHECK(ss_nameservers_read(&again, text) == SS_OK);
    CHECK(ss_nameservers_equal(servers, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char before[] = "# before\nsearch a.test\n", after[] = "\noptions ndots:9\n";
    const size_t before_len = sizeof before - 1, after_len = sizeof after - 1;
    struct ss_nameservers servers, within;
    char *text = malloc(before_len + len + after_len);

    CHECK(text != NULL);
    ss_nameservers_read_resolv_conf(&servers, (const char *)bytes, len);
    CHECK(servers.count <= SS_NAMESERVERS_SYSTEM);
    check_again(&servers);

    memcpy(text, before, before_len);
    if (len != 0)
        memcpy(text + before_len, bytes, len);
    memcpy(text + before_len + len, after, after_len);
    ss_nameservers_read_resolv_conf(&within, text, before_len + len + after_len);
    CHECK(ss_nameservers_equal(&servers, &within));

    if (len != 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
    if (ss_nameservers_read(&servers, text) == SS_OK) {
        CHECK(servers.count >= 1 && servers.count <= SS_NAMESERVERS_MAX);
        check_again(&servers);
    }
    free(text);
    return 0;
}
