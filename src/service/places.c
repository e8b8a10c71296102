/* Which plugin stands before which port of which server. */
#include "service/service_internal.h"

#include <stdlib.h>

#include "base/log.h"

bool ss_service_is_first_of_port(const struct ss_config_server *server, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (server->addresses[i].port == server->addresses[index].port)
            return false;
    return true;
}

bool ss_service_uses_plugins(const struct ss_config *config)
{
    for (size_t i = 0; i < config->server_count; i++)
        if (config->servers[i].plugin != NULL)
            return true;
    return false;
}

static size_t count_places(const struct ss_config *config)
{
    size_t count = 0;

    for (size_t i = 0; i < config->server_count; i++)
        if (config->servers[i].plugin != NULL)
            count += config->servers[i].address_count;
    return count;
}

bool ss_service_place_plugins(struct ss_service *service)
{
    const struct ss_config *config = service->config;

    if (!ss_service_uses_plugins(config))
        return true;
    service->places = calloc(count_places(config), sizeof *service->places);
    if (service->places == NULL) {
        ss_log_error("%s", ss_status_text(SS_ERR_MEMORY));
        return false;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        const struct ss_config_server *server = &config->servers[i];

        for (size_t a = 0; server->plugin != NULL && a < server->address_count; a++) {
            uint16_t port = server->addresses[a].port;
            struct ss_plugin *plugin;

            if (!ss_service_is_first_of_port(server, a))
                continue;
            plugin = ss_plugin_hold(service->plugins, server, port);
            if (plugin == NULL)
                return false;
            service->places[service->place_count++] =
                (struct ss_plugin_place){.server = i, .port = port, .plugin = plugin};
        }
    }
    return true;
}

const struct ss_addr *ss_service_plugin_at(const struct ss_service *service, size_t server,
                                           uint16_t port)
{
    for (size_t i = 0; i < service->place_count; i++)
        if (service->places[i].server == server && service->places[i].port == port)
            return ss_plugin_local(service->places[i].plugin);
    return NULL;
}

void ss_service_leave_plugins(struct ss_service *service)
{
    for (size_t i = 0; i < service->place_count; i++)
        ss_plugin_release(service->places[i].plugin);
    free(service->places);
    service->places = NULL;
    service->place_count = 0;
}
