/* What is read from an ss:// URL is read again, the same, from the URL that is written of it. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "config/url.h"

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void check(const char *text)
{
    struct ss_url url, again;
    size_t cap = strlen(text) * 6 + 64;
    char *written;

    if (ss_url_parse(&url, text) != NULL) {
        ss_url_clear(&url);
        return;
    }
    CHECK(url.endpoint.port != 0 && url.endpoint.host[0] != '\0');
    CHECK(url.method != NULL && url.method[0] != '\0' && url.password != NULL);
    written = malloc(cap);
    CHECK(written != NULL);
    CHECK(ss_url_format(written, cap, &url));
    /* A method with a colon in it can be read from the percent form, but not be written. */
    if (strchr(url.method, ':') == NULL) {
        CHECK(ss_url_parse(&again, written) == NULL);
        CHECK(same(url.method, again.method) && same(url.password, again.password));
        CHECK(same(url.plugin, again.plugin) && same(url.plugin_opts, again.plugin_opts));
        CHECK(url.tag == NULL || url.tag[0] == '\0' || same(url.tag, again.tag));
        CHECK(same(url.endpoint.host, again.endpoint.host));
        CHECK(url.endpoint.port == again.endpoint.port);
        ss_url_clear(&again);
    }
    ss_url_clear(&url);
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1);

    CHECK(text != NULL);
    if (len != 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
    check(text);
    free(text);
    return 0;
}
