/* An ss:// URL as configuration, and the configuration as URLs. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "codec/keys.h"
#include "codec/method.h"
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

/* One URL for each of the server's addresses. */
static bool print_addresses(const struct ss_config_server *server, struct ss_url *url, FILE *out)
{
    size_t cap = 16384;
    char *text = malloc(cap);
    bool fits = true;

    if (text == NULL)
        return false;
    for (size_t i = 0; fits && i < server->address_count; i++) {
        url->endpoint = server->addresses[i];
        fits = ss_url_format(text, cap, url);
        if (fits)
            fprintf(out, "%s\n", text);
        else
            ss_log_error("server %s has no form as an ss:// URL", url->endpoint.host);
    }
    ss_wipe(text, cap);
    free(text);
    return fits;
}

/*
 * Keys of the 2022 methods as every program reads them: the standard alphabet, padded. `second` is
 * one more at the end of the chain, or NULL. What is no key stays as it is.
 */
static char *plain_chain(const char *method_name, const char *first, const char *second)
{
    const struct ss_method *method = ss_method_find(method_name);
    const char *const texts[2] = {first, second};
    size_t cap = 2 * (SS_CHAIN_MAX * (SS_BASE64_LEN(SS_KEY_MAX) + 1)) + 1, used = 0;
    uint8_t keys[SS_CHAIN_MAX][SS_KEY_MAX];
    char *chain = malloc(cap);
    bool good = chain != NULL;

    for (size_t t = 0; good && t < 2 && texts[t] != NULL; t++) {
        struct ss_view text = {(const uint8_t *)texts[t], strlen(texts[t])};
        struct ss_key_fault fault;
        size_t count = 0;

        good = ss_keys_parse(keys, &count, method, text, &fault) == SS_OK;
        for (size_t i = 0; good && i < count; i++) {
            if (used != 0)
                chain[used++] = ':';
            ss_base64_encode(chain + used, keys[i], method->key_len, SS_BASE64_STANDARD);
            used += strlen(chain + used);
        }
    }
    ss_wipe(keys, sizeof keys);
    if (good)
        return chain;
    if (chain != NULL)
        ss_wipe(chain, used);
    free(chain);
    return second == NULL ? ss_text_copy(first) : NULL;
}

static bool print_secret(const struct ss_config_server *server, struct ss_url *url, const char *key,
                         const char *second, FILE *out)
{
    bool printed = false;

    url->password = plain_chain(server->method, key, second);
    if (url->password != NULL)
        printed = print_addresses(server, url, out);
    else
        ss_log_error("server %s, port %u: the keys can't be used", server->addresses[0].host,
                     server->addresses[0].port);
    ss_secret_free(url->password);
    return printed;
}

/* One for each user, with a chain of the server's key and the user's. */
static bool print_identities(const struct ss_config_server *server, struct ss_url *url,
                             const char *key, FILE *out)
{
    bool printed = true;

    for (size_t i = 0; i < server->identity_count; i++) {
        const struct ss_config_identity *identity = &server->identities[i];

        url->tag = identity->name;
        if (identity->next != NULL)
            ss_log_warn("user '%s' is passed on to %s; the keys of the URL depend on that server",
                        identity->name, identity->next->host);
        else
            printed = print_secret(server, url, key, identity->password, out) && printed;
    }
    return printed;
}

static bool print_server(const struct ss_config_server *server, FILE *out)
{
    const struct ss_method *method = ss_method_find(server->method);
    bool is_2022 = method != NULL && method->family == SS_METHODS_2022;
    struct ss_url url = {.method = server->method,
                         .password = server->password,
                         .plugin = server->plugin,
                         .plugin_opts = server->plugin_opts,
                         .tag = server->name};
    const char *key = server->key != NULL ? server->key : server->password;

    if (server->key != NULL && !is_2022) {
        ss_log_error("server %s, port %u: a key has no place in an ss:// URL, only a password",
                     server->addresses[0].host, server->addresses[0].port);
        return false;
    }
    for (size_t i = 0; i < server->address_count; i++) {
        struct ss_ip ip;

        if (ss_ip_parse(&ip, server->addresses[i].host) == SS_OK && ss_ip_is_any(&ip))
            ss_log_warn("%s is every address of this machine; a client needs one that it can reach",
                        server->addresses[i].host);
    }
    if (!is_2022 || key == NULL)
        return print_addresses(server, &url, out);
    return server->identity_count != 0 ? print_identities(server, &url, key, out)
                                       : print_secret(server, &url, key, NULL, out);
}

bool ss_config_print_url(const struct ss_config *config, FILE *out)
{
    bool printed = true;

    for (size_t i = 0; i < config->server_count; i++)
        printed = print_server(&config->servers[i], out) && printed;
    fflush(out);
    return printed;
}
