/* Names to listen on. */
#include "service/service_internal.h"

#include <stdlib.h>
#include <string.h>

#include "sys/names.h"

enum ss_status ss_service_name(const struct ss_service *service, struct ss_ip *ip, const char *host,
                               const char **error_text)
{
    if (ss_ip_parse(ip, host) == SS_OK)
        return SS_OK;
    for (size_t i = 0; i < service->name_count; i++) {
        const struct ss_known_name *name = &service->names[i];

        if (strcmp(name->host, host) != 0)
            continue;
        *ip = name->ip;
        *error_text = name->error_text;
        return name->status;
    }
    return ss_names_first(ip, host, error_text);
}

static void look_up(struct ss_service *service, const char *host)
{
    struct ss_known_name name = {.host = host};
    struct ss_ip ip;

    if (host == NULL || ss_ip_parse(&ip, host) == SS_OK)
        return;
    for (size_t i = 0; i < service->name_count; i++)
        if (strcmp(service->names[i].host, host) == 0)
            return;
    name.status = ss_names_first(&name.ip, host, &name.error_text);
    service->names[service->name_count++] = name;
}

enum ss_status ss_service_look_names_up(struct ss_service *service)
{
    const struct ss_config *config = service->config;
    bool is_server = config->program == SS_PROGRAM_SERVER;
    size_t count = 2 * config->local_count;

    for (size_t i = 0; is_server && i < config->server_count; i++)
        count += config->servers[i].address_count;
    service->names = calloc(count + 1, sizeof *service->names);
    if (service->names == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; is_server && i < config->server_count; i++)
        for (size_t a = 0; a < config->servers[i].address_count; a++)
            look_up(service, config->servers[i].addresses[a].host);
    for (size_t i = 0; i < config->local_count; i++) {
        look_up(service, config->locals[i].address);
        look_up(service, config->locals[i].udp_address);
    }
    return SS_OK;
}
