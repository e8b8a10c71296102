/* Methods and keys out of the configuration. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "codec/codec.h"
#include "codec/packet.h"
#include "crypto/kdf.h"
#include "crypto/secret.h"

#define KEY_TEXT_MAX 1024 /* bytes of a key that are looked at; a method uses at most 32 */

static bool is_2022(const struct ss_method *method)
{
    return method->family == SS_METHODS_2022;
}

/*
 * The users of a server, each with a place where its traffic is counted, which the service keeps.
 * SS_ERR_KEY after the error lines.
 */
static enum ss_status make_users(struct ss_users **users, struct ss_service *service, size_t index,
                                 const struct ss_method *method)
{
    const struct ss_config_server *server = &service->config->servers[index];
    size_t count = server->identity_count;
    struct ss_user_options *list = calloc(count, sizeof *list);
    struct ss_user_counters *counters = calloc(count, sizeof *counters);
    struct ss_key_fault fault = {0};
    enum ss_status status = SS_ERR_MEMORY;

    service->counters[index] = counters;
    if (list == NULL || counters == NULL)
        goto done;
    for (size_t i = 0; i < count; i++) {
        const struct ss_config_identity *identity = &server->identities[i];

        list[i].name = identity->name;
        list[i].password =
            (struct ss_view){(const uint8_t *)identity->password, strlen(identity->password)};
        list[i].next = identity->next;
        list[i].tag = &counters[i];
    }
    status = ss_users_new(users, method, list, count, &fault);
    if (status == SS_ERR_KEY)
        ss_service_log_key_fault(service->config, index, &fault,
                                 fault.kind != SS_KEY_HAS_NO_CHAINS);
done:
    free(list);
    return status;
}

static enum ss_status make_2022(struct ss_profile **profile, struct ss_service *service,
                                size_t index, struct ss_profile_options *options)
{
    const struct ss_config *config = service->config;
    const struct ss_config_server *server = &config->servers[index];
    const char *text = server->key != NULL ? server->key : server->password;
    struct ss_key_fault fault = {0};
    enum ss_status status = SS_OK;

    if (service->salt_pool == NULL) {
        service->salt_pool = ss_salt_pool_new(config->salt_pool);
        if (service->salt_pool == NULL)
            return SS_ERR_MEMORY;
    }
    if (server->identity_count != 0)
        status = make_users(&options->users, service, index, options->method);
    if (status != SS_OK)
        return status;
    options->password = (struct ss_view){(const uint8_t *)text, strlen(text)};
    options->salt_pool = service->salt_pool;
    options->fault = &fault;
    status = ss_profile_new(profile, options);
    if (status == SS_OK && config->program == SS_PROGRAM_SERVER &&
        ss_profile_identity_count(*profile) != 0) {
        fault = (struct ss_key_fault){.kind = SS_KEY_OF_SERVER_IS_CHAIN,
                                      .needed = 1,
                                      .given = ss_profile_identity_count(*profile) + 1};
        ss_profile_release(*profile);
        *profile = NULL;
        status = SS_ERR_KEY;
    }
    if (status == SS_ERR_KEY)
        ss_service_log_key_fault(config, index, &fault, fault.kind == SS_KEY_IS_THE_SERVERS);
    ss_users_release(options->users);
    return status;
}

static enum ss_status make_older(struct ss_profile **profile, const struct ss_service *service,
                                 size_t index, struct ss_profile_options *options)
{
    const struct ss_config_server *server = &service->config->servers[index];
    const struct ss_method *method = options->method;
    uint8_t key[KEY_TEXT_MAX];
    size_t key_len = 0;
    enum ss_status status = SS_OK;

    if (server->identity_count != 0) {
        const struct ss_key_fault fault = {.kind = SS_KEY_HAS_NO_CHAINS};

        ss_service_log_key_fault(service->config, index, &fault, false);
        return SS_ERR_KEY;
    }
    if (server->key != NULL) {
        status = ss_base64_decode(key, sizeof key, &key_len, server->key, strlen(server->key),
                                  SS_BASE64_EITHER);
        if (status != SS_OK || key_len < method->key_len) {
            ss_service_log_short_key(method, status == SS_OK, key_len);
            status = SS_ERR_KEY;
        }
        options->key = (struct ss_view){key, key_len};
    } else {
        /* An empty password is one too; it is a key like that of any other. */
        const char *password = server->password != NULL ? server->password : "";

        ss_kdf_password(key, method->key_len, password, strlen(password));
        options->key = (struct ss_view){key, method->key_len};
    }
    if (status == SS_OK)
        status = ss_profile_new(profile, options);
    ss_wipe(key, sizeof key);
    return status;
}

/* NULL after the error lines. */
static struct ss_profile *make_profile(struct ss_service *service, size_t index,
                                       const struct ss_method *method)
{
    struct ss_profile *profile = NULL;
    struct ss_profile_options options = {
        .method = method,
        .salts = service->salts,
        .packet_salts = service->packet_salts,
        .first_read_may_be_short = ss_plugin_carries(&service->config->servers[index], false)};
    enum ss_status status = is_2022(method) ? make_2022(&profile, service, index, &options)
                                            : make_older(&profile, service, index, &options);

    if (status != SS_OK && status != SS_ERR_KEY) {
        ss_log_error("%s: %s", method->name, ss_status_text(status));
        ss_log_error("failed to initialize ciphers");
    }
    return profile;
}

/* The lines come once a method, however many ports have it. */
static bool was_said(const struct ss_config *config, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(config->servers[i].method, config->servers[index].method) == 0)
            return true;
    return false;
}

static void log_method(const struct ss_config *config, size_t index)
{
    const struct ss_method *method = ss_method_find(config->servers[index].method);

    if (index != 0 && was_said(config, index))
        return;
    ss_log_info("initializing ciphers... %s", config->servers[index].method);
    if (method == NULL)
        return;
    if (method->family == SS_METHODS_STREAM || method->family == SS_METHODS_PLAIN)
        ss_service_warn_of_streams();
    if (method->family == SS_METHODS_PLAIN)
        ss_log_warn("%s encrypts nothing: whoever is on the way can read and change it all",
                    method->name);
}

void ss_service_log_methods(const struct ss_config *config)
{
    for (size_t i = 0; i < config->server_count; i++)
        log_method(config, i);
}

bool ss_service_make_profiles(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    bool only, udp = ss_service_wants_udp(config, &only);

    service->profiles = calloc(config->server_count, sizeof(struct ss_profile *));
    service->counters = calloc(config->server_count, sizeof(struct ss_user_counters *));
    service->salts = ss_salt_memory_new(config->salt_memory);
    if (udp)
        service->packet_salts = ss_salt_memory_new(config->salt_memory);
    if (service->profiles == NULL || service->counters == NULL || service->salts == NULL ||
        (udp && service->packet_salts == NULL)) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_method *method = ss_method_find(config->servers[i].method);
        size_t size;

        log_method(config, i);
        if (method == NULL) {
            ss_service_log_unknown_method(config->servers[i].method);
            return false;
        }
        service->profiles[i] = make_profile(service, i, method);
        if (service->profiles[i] == NULL)
            return false;
        size = ss_codec_size(service->profiles[i]);
        if (size > service->codec_size)
            service->codec_size = size;
        size = ss_packet_link_size(service->profiles[i]);
        if (size > service->packet_link_size)
            service->packet_link_size = size;
    }
    return true;
}

void ss_service_log_providers(const struct ss_service *service)
{
    for (size_t i = 0; i < service->config->server_count; i++) {
        const struct ss_aead *aead = ss_profile_aead(service->profiles[i]);

        if (aead != NULL && (i == 0 || !was_said(service->config, i)))
            ss_log_debug("%s is done by %s", service->config->servers[i].method,
                         aead->provider_name);
    }
}

void ss_service_free_profiles(struct ss_service *service)
{
    for (size_t i = 0; i < service->config->server_count; i++) {
        if (service->profiles != NULL)
            ss_profile_release(service->profiles[i]);
        if (service->counters != NULL)
            free(service->counters[i]);
    }
    free(service->profiles);
    free(service->counters);
    service->profiles = NULL;
    service->counters = NULL;
    ss_salt_memory_free(service->salts);
    ss_salt_memory_free(service->packet_salts);
    ss_salt_pool_free(service->salt_pool);
    service->salts = service->packet_salts = NULL;
    service->salt_pool = NULL;
}
