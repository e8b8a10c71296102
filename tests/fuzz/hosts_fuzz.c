/* The hosts parser: every name it keeps is one that can be asked, is found, and stays the same when
 * the text comes twice. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "resolver/hosts.h"

#define ADDRESSES 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ss_hosts once = {0}, twice = {0};
    char *text = malloc(2 * len + 1);
    size_t at = 0;

    CHECK(text != NULL);
    if (len != 0) {
        memcpy(text, bytes, len);
        memcpy(text + len + 1, bytes, len);
    }
    text[len] = '\n';
    CHECK(ss_hosts_parse(&once, text, len) == SS_OK);
    CHECK(ss_hosts_parse(&twice, text, 2 * len + 1) == SS_OK);
    CHECK(twice.count == 2 * once.count);

    for (size_t left = once.count; left != 0; left--) {
        struct ss_ip a[ADDRESSES], b[ADDRESSES];
        const char *name;
        size_t count;

        while (once.names[at] == '\0') /* a final dot was here */
            at++;
        name = once.names + at;
        at += strlen(name) + 1;
        CHECK(ss_host_is_valid(name, strlen(name)));
        CHECK(strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ# \t\r\n") == NULL);
        count = ss_hosts_find(&once, name, a, ADDRESSES);
        CHECK(count != 0 && count == ss_hosts_find(&twice, name, b, ADDRESSES));
        for (size_t i = 0; i < count; i++)
            CHECK(ss_ip_equal(&a[i], &b[i]));
    }
    ss_hosts_clear(&once);
    ss_hosts_clear(&twice);
    free(text);
    return 0;
}
