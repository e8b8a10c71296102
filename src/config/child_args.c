/* Settings of ss-manager as words for ss-server. */
#include "config/child_args.h"

#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

/* Collects words until memory is out, which is asked once, at the end. */
struct writer {
    char **words;
    size_t count;
    enum ss_status status;
};

static void put(struct writer *writer, const char *text)
{
    if (writer->status == SS_OK)
        writer->status = ss_words_add(&writer->words, &writer->count, text);
}

static void put_pair(struct writer *writer, const char *option, const char *value)
{
    if (value == NULL)
        return;
    put(writer, option);
    put(writer, value);
}

static void put_number(struct writer *writer, const char *option, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof text, "%u", number);
    put_pair(writer, option, text);
}

static void put_flag(struct writer *writer, const char *option, bool on)
{
    if (on)
        put(writer, option);
}

static void put_ip(struct writer *writer, const char *option, const struct ss_ip *ip)
{
    char text[SS_IP_TEXT_MAX];

    if (ip->family != SS_FAMILY_NONE)
        put_pair(writer, option, ss_ip_format(ip, text));
}

/* Settings that are handed on in another way, or are the manager's own. */
static bool is_apart(const struct ss_setting *setting)
{
    static const size_t apart[] = {offsetof(struct ss_config, method),
                                   offsetof(struct ss_config, mode),
                                   offsetof(struct ss_config, plugin),
                                   offsetof(struct ss_config, plugin_opts),
                                   offsetof(struct ss_config, plugin_mode),
                                   offsetof(struct ss_config, acl),
                                   offsetof(struct ss_config, manager_address),
                                   offsetof(struct ss_config, local_ipv4_address),
                                   offsetof(struct ss_config, local_ipv6_address),
                                   offsetof(struct ss_config, outbound_bind_addr),
                                   offsetof(struct ss_config, interface),
                                   offsetof(struct ss_config, ipv6_first),
                                   offsetof(struct ss_config, nameservers),
                                   offsetof(struct ss_config, fast_open),
                                   offsetof(struct ss_config, no_delay),
                                   offsetof(struct ss_config, mtu),
                                   offsetof(struct ss_config, timeout_s),
                                   offsetof(struct ss_config, nofile),
                                   offsetof(struct ss_config, config_path),
                                   offsetof(struct ss_config, pid_file),
                                   offsetof(struct ss_config, user),
                                   offsetof(struct ss_config, use_syslog),
                                   offsetof(struct ss_config, verbose),
                                   offsetof(struct ss_config, reuse_port)};

    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++)
        if (setting->offset == apart[i])
            return true;
    return setting->offset == UINT16_MAX;
}

static void put_setting(struct writer *writer, const struct ss_config *config, size_t row)
{
    const struct ss_setting *setting = &ss_settings[row];
    const void *field = (const char *)config + setting->offset;
    char option[64];

    if (setting->option != NULL)
        snprintf(option, sizeof option, "--%s", setting->option);
    else
        snprintf(option, sizeof option, "-%c", setting->letter);
    switch (setting->kind) {
    case SS_KIND_TEXT:
    case SS_KIND_SECRET:
        put_pair(writer, option, *(char *const *)field);
        break;
    case SS_KIND_FLAG:
        put_flag(writer, option, *(const bool *)field);
        break;
    case SS_KIND_NUMBER:
    case SS_KIND_LOOSE:
    case SS_KIND_MARK:
        put_number(writer, option, *(const uint32_t *)field);
        break;
    case SS_KIND_LEVEL:
        put_pair(writer, option, ss_log_level_text((enum ss_log_level) * (const uint8_t *)field));
        break;
    default:
        break;
    }
}

/* The rest of what both programs know, where it was given: settings that come to be known later
 * find their way by themselves. */
static void put_rest(struct writer *writer, const struct ss_config *config)
{
    put_ip(writer, "-b", &config->bind_ipv4);
    put_ip(writer, "-b", &config->bind_ipv6);
    for (size_t row = 0; row < ss_setting_count; row++) {
        const struct ss_setting *setting = &ss_settings[row];

        if ((setting->line & SS_PROGRAM_SERVER) != 0 && (setting->line & SS_PROGRAM_MANAGER) != 0 &&
            (setting->option != NULL || setting->letter != 0) && !is_apart(setting) &&
            config->source[row] != SS_SOURCE_DEFAULT)
            put_setting(writer, config, row);
    }
}

static void put_plugin_rest(struct writer *writer, const struct ss_config *config)
{
    for (size_t i = 0; config->plugin_args != NULL && config->plugin_args[i] != NULL; i++)
        put_pair(writer, "--plugin-args", config->plugin_args[i]);
    if (ss_config_source(config, offsetof(struct ss_config, plugin_mode)) != SS_SOURCE_DEFAULT)
        put_pair(writer, "--plugin-mode", ss_mode_text(config->plugin_mode));
}

static enum ss_status end(struct writer *writer, char ***words)
{
    if (writer->status != SS_OK)
        ss_words_free(writer->words);
    *words = writer->status == SS_OK ? writer->words : NULL;
    return writer->status;
}

enum ss_status ss_child_args_all(char ***words, const struct ss_config *config)
{
    struct writer writer = {.status = SS_OK};

    put(&writer, config->executable != NULL ? config->executable : "ss-server");
    put(&writer, "--control-stdio");
    put_pair(&writer, "--acl", config->acl);
    put_number(&writer, "-t", config->timeout_s);
    if (config->nofile != 0)
        put_number(&writer, "-n", config->nofile);
    put_pair(&writer, "-a", config->user);
    put_flag(&writer, "-v", config->verbose);
    put_pair(&writer, "-i", config->interface);
    put_flag(&writer, "--fast-open", config->fast_open);
    put_flag(&writer, "--no-delay", config->no_delay);
    put_flag(&writer, "-6", config->ipv6_first);
    if (config->mtu != 0)
        put_number(&writer, "--mtu", config->mtu);
    put_pair(&writer, "-d", config->nameservers);
    put_flag(&writer, "--reuse-port", config->reuse_port);
    put_flag(&writer, "--use-syslog", config->use_syslog || config->pid_file != NULL);
    put_rest(&writer, config);
    return end(&writer, words);
}

enum ss_status ss_child_args_port(char ***words, const struct ss_config *config,
                                  const struct ss_port_spec *spec,
                                  const struct ss_port_files *files)
{
    const struct ss_config_server *server = &spec->server;
    struct writer writer = {.status = SS_OK};

    put(&writer, config->executable != NULL ? config->executable : "ss-server");
    put_pair(&writer, "--manager-address", files->manager_address);
    put_pair(&writer, "-f", files->pid_path);
    put_pair(&writer, "-c", files->config_path);
    put_pair(&writer, "--acl", config->acl);
    put_number(&writer, "-t", spec->timeout_s != 0 ? spec->timeout_s : config->timeout_s);
    if (config->nofile != 0)
        put_number(&writer, "-n", config->nofile);
    put_pair(&writer, "-a", config->user);
    put_flag(&writer, "-v", config->verbose);
    if (!server->mode_given) {
        put_flag(&writer, "-U", config->mode == SS_MODE_UDP_ONLY);
        put_flag(&writer, "-u", config->mode == SS_MODE_TCP_AND_UDP);
    }
    put_pair(&writer, "-i", config->interface);
    put_flag(&writer, "--fast-open", config->fast_open && spec->fast_open == SS_CHOICE_NONE);
    put_flag(&writer, "--no-delay", config->no_delay && spec->no_delay == SS_CHOICE_NONE);
    put_flag(&writer, "-6", config->ipv6_first);
    if (config->mtu != 0)
        put_number(&writer, "--mtu", config->mtu);
    if (server->plugin == NULL)
        put_pair(&writer, "--plugin", config->plugin);
    if (server->plugin == NULL && server->plugin_opts == NULL)
        put_pair(&writer, "--plugin-opts", config->plugin_opts);
    put_pair(&writer, "-d", config->nameservers);
    if (server->plugin == NULL)
        put_plugin_rest(&writer, config);
    put_rest(&writer, config);
    for (size_t i = 0; i < config->host_count; i++)
        put_pair(&writer, "-s", config->hosts[i].host);
    return end(&writer, words);
}

void ss_child_args_free(char **words)
{
    ss_words_free(words);
}
