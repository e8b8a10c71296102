/* An ss:// URL as configuration, and the configuration as URLs. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/url.h"
#include "crypto/secret.h"

#define LOCAL_PORT "1080"

static enum ss_status set(struct ss_raw *raw, size_t offset, const char *text)
{
    return text != NULL ? ss_raw_set(raw, ss_setting_at(offset), text, SS_SOURCE_FILE) : SS_OK;
}

static enum ss_status use(struct ss_raw *raw, const struct ss_url *url)
{
    size_t local_port = ss_setting_at(offsetof(struct ss_config, local_port));
    enum ss_status status;
    char port[8];

    if (raw->servers_source != SS_SOURCE_LINE) {
        raw->servers[0] = ss_text_copy(url->endpoint.host);
        if (raw->servers[0] == NULL)
            return SS_ERR_MEMORY;
        raw->server_count = 1;
        raw->servers_source = SS_SOURCE_FILE;
    }
    snprintf(port, sizeof port, "%u", url->endpoint.port);
    status = set(raw, offsetof(struct ss_config, server_port), port);
    if (status == SS_OK)
        status = set(raw, offsetof(struct ss_config, method), url->method);
    if (status == SS_OK)
        status = set(raw, offsetof(struct ss_config, password), url->password);
    if (status == SS_OK)
        status = set(raw, offsetof(struct ss_config, plugin), url->plugin);
    if (status == SS_OK)
        status = set(raw, offsetof(struct ss_config, plugin_opts), url->plugin_opts);
    /* A URL has no place for the port that a client listens on. */
    if (status == SS_OK && raw->program == SS_PROGRAM_LOCAL && raw->text[local_port] == NULL)
        status = ss_raw_set(raw, local_port, LOCAL_PORT, SS_SOURCE_DEFAULT);
    return status;
}

enum ss_status ss_config_url_read(struct ss_raw *raw, const char *text)
{
    struct ss_url url;
    const char *wrong = ss_url_parse(&url, text);
    enum ss_status status = SS_ERR_FORMAT;
    size_t path = ss_setting_at(offsetof(struct ss_config, config_path));

    if (wrong != NULL)
        ss_log_error("the ss:// URL can't be used: %s", wrong);
    else
        status = use(raw, &url);
    ss_url_clear(&url);

    /* It holds the password, and is not a path. */
    ss_secret_free(raw->text[path]);
    raw->text[path] = NULL;
    return status;
}

static bool print_server(const struct ss_config_server *server, FILE *out)
{
    struct ss_url url = {.method = server->method,
                         .password = server->password,
                         .plugin = server->plugin,
                         .plugin_opts = server->plugin_opts,
                         .tag = server->name};
    size_t cap = 16384;
    char *text;
    bool fits = true;

    if (server->key != NULL) {
        ss_log_error("server %s, port %u: a key has no place in an ss:// URL, only a password",
                     server->addresses[0].host, server->addresses[0].port);
        return false;
    }
    text = malloc(cap);
    if (text == NULL)
        return false;
    for (size_t i = 0; fits && i < server->address_count; i++) {
        struct ss_ip ip;

        url.endpoint = server->addresses[i];
        if (ss_ip_parse(&ip, url.endpoint.host) == SS_OK && ss_ip_is_any(&ip))
            ss_log_warn("%s is every address of this machine; a client needs one that it can reach",
                        url.endpoint.host);
        fits = ss_url_format(text, cap, &url);
        if (fits)
            fprintf(out, "%s\n", text);
        else
            ss_log_error("server %s has no form as an ss:// URL", url.endpoint.host);
    }
    ss_wipe(text, cap);
    free(text);
    return fits;
}

bool ss_config_print_url(const struct ss_config *config, FILE *out)
{
    bool printed = true;

    for (size_t i = 0; i < config->server_count; i++)
        printed = print_server(&config->servers[i], out) && printed;
    fflush(out);
    return printed;
}
