/* The profiles of a configuration's servers, and the lines about their methods. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/codec.h"
#include "codec/packet.h"

#define NONE SIZE_MAX

static bool shares_address(const struct ss_config_server *one, const struct ss_config_server *other)
{
    for (size_t i = 0; i < one->address_count; i++)
        for (size_t k = 0; k < other->address_count; k++)
            if (one->addresses[i].port == other->addresses[k].port &&
                strcmp(one->addresses[i].host, other->addresses[k].host) == 0)
                return true;
    return false;
}

/* One address may be written in many ways. */
static bool shares_port(const struct ss_config_server *one, const struct ss_config_server *other)
{
    return one->addresses[0].port == other->addresses[0].port;
}

/* Gives servers that have none yet the one before that they follow, each to one alone. Lists mostly
 * stay as they are, so the search begins at the same place. */
static void find_followed(const struct ss_config *config, const struct ss_config *before,
                          size_t *followed, bool *taken,
                          bool (*is_same)(const struct ss_config_server *one,
                                          const struct ss_config_server *other))
{
    for (size_t i = 0; i < config->server_count; i++)
        for (size_t k = 0; followed[i] == NONE && k < before->server_count; k++) {
            size_t at = (i + k) % before->server_count;

            if (taken[at] || !is_same(&config->servers[i], &before->servers[at]))
                continue;
            followed[i] = at;
            taken[at] = true;
        }
}

/* For each server the place of the one before that it follows, or NONE; to be freed. NULL: memory
 * is out. */
static size_t *follow(const struct ss_config *config, const struct ss_config *before)
{
    size_t *followed = malloc((config->server_count + 1) * sizeof *followed);
    bool *taken = calloc(before != NULL ? before->server_count + 1 : 1, sizeof *taken);

    for (size_t i = 0; followed != NULL && i < config->server_count; i++)
        followed[i] = NONE;
    if (followed != NULL && taken != NULL && before != NULL) {
        find_followed(config, before, followed, taken, shares_address);
        find_followed(config, before, followed, taken, shares_port);
    }
    if (taken == NULL) {
        free(followed);
        followed = NULL;
    }
    free(taken);
    return followed;
}

/* False after the error lines. */
static bool make_keying(struct ss_service *service, size_t index, const struct ss_method *method,
                        const struct ss_keying *before)
{
    const struct ss_config *config = service->config;
    const struct ss_config_server *server = &config->servers[index];
    const struct ss_keying_options options = {.shared = service->shared,
                                              .config = config,
                                              .server = server,
                                              .method = method,
                                              .before = before};
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

static void note_sizes(struct ss_service *service, const struct ss_profile *profile)
{
    size_t codec = ss_codec_size(profile), link = ss_packet_link_size(profile);

    if (codec > service->codec_size)
        service->codec_size = codec;
    if (link > service->packet_link_size)
        service->packet_link_size = link;
}

static bool make_keyings(struct ss_service *service, const struct ss_service *before,
                         const size_t *followed)
{
    const struct ss_config *config = service->config;

    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_method *method = ss_method_find(config->servers[i].method);

        if (before == NULL)
            log_method(config, i);
        if (method == NULL) {
            ss_service_log_unknown_method(config->servers[i].method);
            return false;
        }
        if (!make_keying(service, i, method,
                         followed[i] != NONE ? &before->keyings[followed[i]] : NULL))
            return false;
        /* At a reload they change once the whole is in force. */
        if (before == NULL && service->keyings[i].use != NULL)
            ss_keying_set_limits(&service->keyings[i], &config->servers[i]);
        note_sizes(service, service->keyings[i].profile);
    }
    return true;
}

bool ss_service_make_profiles(struct ss_service *service, const struct ss_service *before)
{
    const struct ss_config *config = service->config;
    bool only, udp = ss_service_wants_udp(config, &only), good = false;
    size_t *followed = follow(config, before != NULL ? before->config : NULL);

    /* Later it may. A profile that is made before would not be the same any more. */
    udp = udp || config->config_path != NULL || config->control_stdio;
    service->keyings = calloc(config->server_count + 1, sizeof *service->keyings);
    if (followed == NULL || service->keyings == NULL ||
        ss_shared_init(service->shared, config, udp) != SS_OK)
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
    else
        good = make_keyings(service, before, followed);
    free(followed);
    return good;
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
