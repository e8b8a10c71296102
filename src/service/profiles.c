/* The profiles of a configuration's servers, and the lines about their methods. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/codec.h"
#include "codec/packet.h"

/* The server of the configuration before that was the same one, by where it is; NULL: none. Lists
 * mostly stay as they are, so the search begins at the same place. */
static const struct ss_keying *keying_before(const struct ss_service *before,
                                             const struct ss_config_server *server, size_t index)
{
    size_t count = before != NULL ? before->config->server_count : 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = (index + i) % count;
        const struct ss_endpoint *endpoint = &before->config->servers[at].addresses[0];

        if (endpoint->port == server->addresses[0].port &&
            strcmp(endpoint->host, server->addresses[0].host) == 0)
            return &before->keyings[at];
    }
    return NULL;
}

/* False after the error lines. */
static bool make_keying(struct ss_service *service, size_t index, const struct ss_method *method,
                        const struct ss_service *before)
{
    const struct ss_config *config = service->config;
    const struct ss_config_server *server = &config->servers[index];
    const struct ss_keying *keying = keying_before(before, server, index);
    const struct ss_keying_options options = {.shared = service->shared,
                                              .config = config,
                                              .server = server,
                                              .method = method,
                                              .before = keying};
    struct ss_key_problem problem;
    enum ss_status status = ss_keying_make(&service->keyings[index], &options, &problem);

    if (status == SS_ERR_KEY) {
        ss_service_log_key_problem(config, index, method, &problem);
    } else if (status != SS_OK) {
        ss_log_error("%s: %s", method->name, ss_status_text(status));
        ss_log_error("failed to initialize ciphers");
    }
    return status == SS_OK;
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

bool ss_service_make_profiles(struct ss_service *service, const struct ss_service *before)
{
    const struct ss_config *config = service->config;
    bool only, udp = ss_service_wants_udp(config, &only);

    /* Later it may. A profile that is made before would not be the same any more. */
    udp = udp || config->config_path != NULL || config->control_stdio;
    service->keyings = calloc(config->server_count + 1, sizeof *service->keyings);
    if (service->keyings == NULL || ss_shared_init(service->shared, config, udp) != SS_OK) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_method *method = ss_method_find(config->servers[i].method);
        size_t size;

        if (before == NULL)
            log_method(config, i);
        if (method == NULL) {
            ss_service_log_unknown_method(config->servers[i].method);
            return false;
        }
        if (!make_keying(service, i, method, before))
            return false;
        /* At a reload they change once the whole is in force. */
        if (before == NULL && service->keyings[i].use != NULL)
            ss_keying_set_limits(&service->keyings[i], &config->servers[i]);
        size = ss_codec_size(service->keyings[i].profile);
        if (size > service->codec_size)
            service->codec_size = size;
        size = ss_packet_link_size(service->keyings[i].profile);
        if (size > service->packet_link_size)
            service->packet_link_size = size;
    }
    return true;
}

void ss_service_log_providers(const struct ss_service *service)
{
    for (size_t i = 0; i < service->config->server_count; i++) {
        const struct ss_aead *aead = ss_profile_aead(service->keyings[i].profile);

        if (aead != NULL && (i == 0 || !was_said(service->config, i)))
            ss_log_debug("%s is done by %s", service->config->servers[i].method,
                         aead->provider_name);
    }
}

void ss_service_free_profiles(struct ss_service *service)
{
    for (size_t i = 0; service->keyings != NULL && i < service->config->server_count; i++)
        ss_keying_clear(&service->keyings[i]);
    free(service->keyings);
    service->keyings = NULL;
}
