/* ss:// URLs (SIP002, and the older form that is base64 as a whole): reading and writing. */
#ifndef SS_CONFIG_URL_H
#define SS_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"

struct ss_url {
    struct ss_endpoint endpoint;
    char *method;
    char *password;    /* to be written: NULL is an empty one */
    char *plugin;      /* NULL: none */
    char *plugin_opts; /* as the plugin gets them; NULL: none */
    char *tag;         /* a display name; NULL: none */
};

/* NULL, or what is wrong with `text` in a few words that show nothing of it. The struct is to be
 * cleared in both cases. Whether the method exists is not looked at. */
const char *ss_url_parse(struct ss_url *url, const char *text);

/* Wipes the password. */
void ss_url_clear(struct ss_url *url);

/* False when `cap` bytes are too few, or the host is a name that no URL can hold. */
bool ss_url_format(char *text, size_t cap, const struct ss_url *url);

#endif
