/* Settings that a running program can't change. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that a reload brings into force; all others are of the start. */
static const size_t live[] = {
    offsetof(struct ss_config, method),
    offsetof(struct ss_config, password),
    offsetof(struct ss_config, key),
    offsetof(struct ss_config, server_port),
    offsetof(struct ss_config, local_port),
    offsetof(struct ss_config, mode),
    offsetof(struct ss_config, tunnel_address),
    offsetof(struct ss_config, plugin),
    offsetof(struct ss_config, plugin_opts),
    offsetof(struct ss_config, plugin_mode),
    offsetof(struct ss_config, acl),
    offsetof(struct ss_config, block_local),
    offsetof(struct ss_config, balance),
    offsetof(struct ss_config, socks5_auth_path),
    offsetof(struct ss_config, udp_open),
    offsetof(struct ss_config, udp_advertised_address),
    offsetof(struct ss_config, no_delay), /* has no effect anyway */
    offsetof(struct ss_config, verbose),
    offsetof(struct ss_config, log_level),
    offsetof(struct ss_config, config_path), /* where it was found */
};

static bool is_live(size_t offset)
{
    for (size_t i = 0; i < sizeof live / sizeof live[0]; i++)
        if (live[i] == offset)
            return true;
    return false;
}

static bool is_text(const struct ss_setting *setting)
{
    return setting->kind == SS_KIND_TEXT || setting->kind == SS_KIND_SECRET;
}

static size_t size_of(const struct ss_setting *setting)
{
    switch (setting->kind) {
    case SS_KIND_FLAG:
        return sizeof(bool);
    case SS_KIND_MODE:
        return sizeof(enum ss_mode);
    case SS_KIND_LEVEL:
    case SS_KIND_BALANCE:
        return sizeof(uint8_t);
    case SS_KIND_PORT:
        return sizeof(uint16_t);
    case SS_KIND_NUMBER:
    case SS_KIND_LOOSE:
    case SS_KIND_MARK:
        return sizeof(uint32_t);
    default:
        return 0; /* no plain field */
    }
}

static void add_name(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);

    (void)snprintf(names + used, size - used, "%s%s", used != 0 ? ", " : "", name);
}

static void add_setting(char *names, size_t size, const struct ss_setting *setting)
{
    char letter[] = {'-', setting->letter, '\0'};

    add_name(names, size, setting->key != NULL ? setting->key : letter);
}

static enum ss_status keep_text(char **field, const char *running, bool *changed)
{
    char *copy = NULL;

    *changed = *field == NULL || running == NULL ? *field != running : strcmp(*field, running) != 0;
    if (!*changed)
        return SS_OK;
    if (running != NULL) {
        copy = ss_text_copy(running);
        if (copy == NULL)
            return SS_ERR_MEMORY;
    }
    ss_secret_free(*field);
    *field = copy;
    return SS_OK;
}

static void keep_sources(struct ss_config *config, const struct ss_config *running, char *names,
                         size_t size)
{
    if (!ss_ip_equal(&config->bind_ipv4, &running->bind_ipv4) ||
        !ss_ip_equal(&config->bind_ipv6, &running->bind_ipv6))
        add_name(names, size, "local_address");
    config->bind_ipv4 = running->bind_ipv4;
    config->bind_ipv6 = running->bind_ipv6;
}

enum ss_status ss_config_keep_fixed(struct ss_config *config, const struct ss_config *running,
                                    char *names, size_t size)
{
    names[0] = '\0';
    for (size_t row = 0; row < ss_setting_count; row++) {
        const struct ss_setting *setting = &ss_settings[row];
        void *field = (char *)config + setting->offset;
        const void *other = (const char *)running + setting->offset;
        bool changed;

        if (setting->offset == UINT16_MAX || setting->kind == SS_KIND_ALIAS ||
            is_live(setting->offset))
            continue;
        if (is_text(setting)) {
            enum ss_status status = keep_text(field, *(char *const *)other, &changed);

            if (status != SS_OK)
                return status;
        } else {
            changed = memcmp(field, other, size_of(setting)) != 0;
            memcpy(field, other, size_of(setting));
        }
        /* What nobody has set follows from others. */
        if (changed &&
            (config->source[row] != SS_SOURCE_DEFAULT || running->source[row] != SS_SOURCE_DEFAULT))
            add_setting(names, size, setting);
        config->source[row] = running->source[row];
    }
    keep_sources(config, running, names, size);
    return SS_OK;
}
