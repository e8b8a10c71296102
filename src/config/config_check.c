/* From texts to checked values: bounds, defaults, and what a program can't do without. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/method.h"
#include "codec/salt_memory.h"
#include "config/json.h"

#define ASSOCIATIONS_CLIENT 1024
#define ASSOCIATIONS_SERVER 4096

/* Of `timeout`, where nothing is said. */
#define TIMEOUT_S       60
#define TIMEOUT_REDIR_S 600

/* Of `timeout`, for UDP: it never was less than this, and milliseconds of it fit into 32 bits. */
#define UDP_TIMEOUT_LEAST_S 10
#define UDP_TIMEOUT_MOST_S  2592000

const char *ss_program_name(enum ss_program program)
{
    switch (program) {
    case SS_PROGRAM_LOCAL:
        return "ss-local";
    case SS_PROGRAM_SERVER:
        return "ss-server";
    case SS_PROGRAM_TUNNEL:
        return "ss-tunnel";
    case SS_PROGRAM_REDIR:
        return "ss-redir";
    case SS_PROGRAM_MANAGER:
        return "ss-manager";
    }
    return "shadowsocks";
}

static const char *const mode_words[] = {"tcp_only", "tcp_and_udp", "udp_only"};
static const char *const level_words[] = {"error", "warn", "info", "debug"};

bool ss_mode_parse(enum ss_mode *mode, const char *text)
{
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(text, mode_words[i]) == 0) {
            *mode = (enum ss_mode)i;
            return true;
        }
    }
    return false;
}

const char *ss_mode_text(enum ss_mode mode)
{
    return mode_words[mode];
}

const char *ss_log_level_text(enum ss_log_level level)
{
    return level_words[level];
}

bool ss_number_parse(uint32_t *value, const char *text, uint32_t min, uint32_t max)
{
    uint64_t number = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > UINT32_MAX)
            return false;
    }
    if (number < min || number > max)
        return false;
    *value = (uint32_t)number;
    return true;
}

enum ss_status ss_host_parse(struct ss_endpoint *endpoint, const char *what, const char *text)
{
    struct ss_ip ip;

    for (size_t i = 0, len = strlen(text); i < len; i++) {
        char meant;
        unsigned code = ss_json_lookalike(text + i, len - i, &meant);

        if (code != 0) {
            ss_log_error("%s '%s': the character U+%04X stands where '%c' was meant", what, text,
                         code, meant);
            return SS_ERR_ARGUMENT;
        }
    }
    if (ss_endpoint_parse(endpoint, text) != SS_OK) {
        ss_log_error("%s '%s' is not a host, with or without a port from 1 to 65535", what, text);
        return SS_ERR_ARGUMENT;
    }
    if (ss_ip_parse(&ip, endpoint->host) != SS_OK &&
        !ss_host_is_valid(endpoint->host, strlen(endpoint->host))) {
        ss_log_error("%s '%s' is neither an address nor a name; names in other scripts are written "
                     "in their xn-- form",
                     what, text);
        return SS_ERR_ARGUMENT;
    }
    return SS_OK;
}

bool ss_nameservers_valid(const char *list)
{
    while (true) {
        size_t len = strcspn(list, ",");
        char text[SS_ADDR_TEXT_MAX];
        struct ss_endpoint endpoint;
        struct ss_ip ip;

        if (len >= sizeof text)
            return false;
        memcpy(text, list, len);
        text[len] = '\0';
        if (ss_endpoint_parse(&endpoint, text) != SS_OK || ss_ip_parse(&ip, endpoint.host) != SS_OK)
            return false;
        if (list[len] == '\0')
            return true;
        list += len + 1;
    }
}

enum ss_source ss_config_source(const struct ss_config *config, size_t offset)
{
    return (enum ss_source)config->source[ss_setting_at(offset)];
}

/* How a person knows the setting: by its key, its option, or its letter. */
static void name_of(char text[64], const struct ss_setting *setting, enum ss_source source)
{
    if (source != SS_SOURCE_LINE && setting->key != NULL)
        snprintf(text, 64, "'%s'", setting->key);
    else if (setting->letter != 0)
        snprintf(text, 64, "-%c", setting->letter);
    else
        snprintf(text, 64, "--%s", setting->option != NULL ? setting->option : setting->key);
}

static enum ss_status refuse_number(const struct ss_setting *setting, enum ss_source source,
                                    const char *text, uint32_t min, uint32_t max)
{
    char name[64];

    name_of(name, setting, source);
    ss_log_error("%s: '%s' is not a number from %u to %u", name, text, min, max);
    return SS_ERR_ARGUMENT;
}

static enum ss_status convert_mode(enum ss_mode *mode, const struct ss_raw *raw, size_t row)
{
    const char *text = raw->text[row];

    if (ss_mode_parse(mode, text))
        return SS_OK;
    if (raw->source[row] == SS_SOURCE_LINE) {
        ss_log_error("--%s: '%s' is not tcp_only, tcp_and_udp or udp_only", ss_settings[row].option,
                     text);
        return SS_ERR_ARGUMENT;
    }
    if (raw->extended || ss_settings[row].ours)
        return ss_key_error("", ss_settings[row].key, "tcp_only, tcp_and_udp or udp_only");
    ss_log_info("ignore unknown mode: %s, use tcp_only as fallback", text);
    ss_log_warn("'mode': '%s' is not tcp_only, tcp_and_udp or udp_only; TCP alone is relayed",
                text);
    *mode = SS_MODE_TCP_ONLY;
    return SS_OK;
}

static enum ss_status convert_level(uint8_t *level, const char *text)
{
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(text, level_words[i]) == 0) {
            *level = (uint8_t)i;
            return SS_OK;
        }
    }
    ss_log_error("log_level: '%s' is not error, warn, info or debug", text);
    return SS_ERR_ARGUMENT;
}

/* Marks stand in rules in either form. */
static bool parse_mark(uint32_t *mark, const char *text)
{
    if (strncmp(text, "0x", 2) != 0 && strncmp(text, "0X", 2) != 0)
        return ss_number_parse(mark, text, 0, UINT32_MAX);
    text += 2;
    if (*text == '\0' || strlen(text) > 8 || strspn(text, "0123456789abcdefABCDEF") != strlen(text))
        return false;
    *mark = (uint32_t)strtoul(text, NULL, 16);
    return true;
}

const char *ss_balancing_text(enum ss_balancing balancing)
{
    return balancing == SS_BALANCING_RANDOM ? "random" : "fastest";
}

static enum ss_status convert_balance(uint8_t *balance, const char *text)
{
    for (unsigned i = SS_BALANCING_FASTEST; i <= SS_BALANCING_RANDOM; i++) {
        if (strcmp(text, ss_balancing_text((enum ss_balancing)i)) == 0) {
            *balance = (uint8_t)i;
            return SS_OK;
        }
    }
    ss_log_error("balance: '%s' is not fastest or random", text);
    return SS_ERR_ARGUMENT;
}

/* One row's text into its field; the text of TEXT and SECRET rows is handed over. */
static enum ss_status convert(struct ss_config *config, struct ss_raw *raw, size_t row)
{
    const struct ss_setting *setting = &ss_settings[row];
    enum ss_source source = (enum ss_source)raw->source[row];
    void *field = (char *)config + setting->offset;
    const char *text = raw->text[row];
    uint32_t number = 0;

    switch (setting->kind) {
    case SS_KIND_TEXT:
    case SS_KIND_SECRET:
    case SS_KIND_CONFIG:
        *(char **)field = raw->text[row];
        raw->text[row] = NULL;
        return SS_OK;
    case SS_KIND_FLAG:
        *(bool *)field = text != NULL;
        return SS_OK;
    case SS_KIND_MODE:
        return text != NULL ? convert_mode(field, raw, row) : SS_OK;
    case SS_KIND_LEVEL:
        *(uint8_t *)field = (uint8_t)setting->fallback;
        return text != NULL ? convert_level(field, text) : SS_OK;
    case SS_KIND_BALANCE:
        return text != NULL ? convert_balance(field, text) : SS_OK;
    case SS_KIND_PORT:
        if (text != NULL && !ss_number_parse(&number, text, 1, UINT16_MAX))
            return refuse_number(setting, source, text, 1, UINT16_MAX);
        *(uint16_t *)field = (uint16_t)number;
        return SS_OK;
    case SS_KIND_NUMBER:
        number = setting->fallback;
        if (text != NULL && !ss_number_parse(&number, text, setting->min, setting->max))
            return refuse_number(setting, source, text, setting->min, setting->max);
        *(uint32_t *)field = number;
        return SS_OK;
    case SS_KIND_MARK:
        if (text != NULL && !parse_mark(&number, text)) {
            char name[64];

            name_of(name, setting, source);
            ss_log_error("%s: '%s' is not a number of 32 bits, in decimal or with 0x in front",
                         name, text);
            return SS_ERR_ARGUMENT;
        }
        *(uint32_t *)field = number;
        return SS_OK;
    case SS_KIND_LOOSE: {
        long long value = text != NULL ? strtoll(text, NULL, 10) : 0;

        if (setting->max != 0 && (value < 0 || value > (long long)setting->max))
            return refuse_number(setting, source, text, 0, setting->max);
        *(uint32_t *)field =
            value > (long long)setting->min && value <= INT32_MAX ? (uint32_t)value : 0;
        return SS_OK;
    }
    default:
        return SS_OK;
    }
}

static enum ss_status convert_all(struct ss_config *config, struct ss_raw *raw)
{
    enum ss_status status = SS_OK;

    for (size_t row = 0; status == SS_OK && row < ss_setting_count; row++) {
        if (ss_settings[row].offset == UINT16_MAX || ss_settings[row].kind == SS_KIND_ALIAS)
            continue;
        config->source[row] = raw->source[row];
        status = convert(config, raw, row);
    }
    return status;
}

/* Where the classic suite prints a bare line and where the usage text. */
static bool complain(const struct ss_raw *raw, const char *line, int *exit_code)
{
    if (raw->again)
        ss_log_error("%s", line);
    else if (raw->program == SS_PROGRAM_LOCAL)
        fprintf(stderr, "%s\n", line);
    else
        ss_usage_print(raw->program);
    *exit_code = 1;
    return false;
}

static bool is_given(const struct ss_raw *raw, size_t offset)
{
    return raw->text[ss_setting_at(offset)] != NULL;
}

/* What must be there, in the order in which the classic suite looks for it. */
static bool has_required(const struct ss_raw *raw, int *exit_code)
{
    enum ss_program program = raw->program;
    bool client = program != SS_PROGRAM_SERVER;
    bool servers_listed = raw->file_server_count != 0 || raw->port_server_count != 0;
    bool needs_local = client && raw->task != SS_TASK_PRINT_URL && raw->file_local_count == 0;
    const char *method = raw->text[ss_setting_at(offsetof(struct ss_config, method))];
    const char *tunnel = raw->text[ss_setting_at(offsetof(struct ss_config, tunnel_address))];

    if (program == SS_PROGRAM_MANAGER || is_given(raw, offsetof(struct ss_config, control_stdio)))
        return true;
    if (client && raw->server_count == 0 && raw->file_server_count == 0)
        return complain(raw, "remote_num is 0", exit_code);
    if (!is_given(raw, offsetof(struct ss_config, server_port)) && !servers_listed)
        return complain(raw, "remote_port is NULL", exit_code);
    if (needs_local && !is_given(raw, offsetof(struct ss_config, local_port)))
        return complain(raw, "local_port is NULL", exit_code);
    if (needs_local && program == SS_PROGRAM_TUNNEL && tunnel == NULL)
        return complain(raw, "tunnel_address is NULL", exit_code);
    if (!is_given(raw, offsetof(struct ss_config, password)) &&
        !is_given(raw, offsetof(struct ss_config, key)) && !servers_listed &&
        ss_method_needs_key(method))
        return complain(raw, "both password and key are NULL", exit_code);
    return true;
}

/* Addresses that outgoing connections come from. */
static void choose_sources(struct ss_config *config, const struct ss_raw *raw)
{
    const char *texts[SS_ADDRESSES_GIVEN_MAX + 3];
    size_t count = 0;
    struct ss_ip ip;

    if (config->outbound_bind_addr != NULL)
        texts[count++] = config->outbound_bind_addr;
    if (ss_serves_ports(config->program)) {
        for (size_t i = 0; i < raw->address_count; i++)
            texts[count++] = raw->addresses[i];
        if (raw->address_count == 0 && config->local_ipv4_address != NULL)
            texts[count++] = config->local_ipv4_address;
        if (raw->address_count == 0 && config->local_ipv6_address != NULL)
            texts[count++] = config->local_ipv6_address;
    }
    for (size_t i = 0; i < count; i++) {
        if (ss_ip_parse(&ip, texts[i]) != SS_OK)
            ss_log_warn("source address '%s' is ignored; it must be an IP address", texts[i]);
        else if (ip.family == SS_FAMILY_IPV4)
            config->bind_ipv4 = ip;
        else
            config->bind_ipv6 = ip;
    }
}

/* Numbers that depend on the program or on each other. */
static void choose_numbers(struct ss_config *config)
{
    bool is_server = ss_serves_ports(config->program);

    if (config->timeout_s == 0)
        config->timeout_s = config->program == SS_PROGRAM_REDIR ? TIMEOUT_REDIR_S : TIMEOUT_S;
    if (config->salt_memory == 0)
        config->salt_memory = is_server ? SS_SALT_MEMORY_SERVER : SS_SALT_MEMORY_CLIENT;
    if (config->max_associations == 0)
        config->max_associations = is_server ? ASSOCIATIONS_SERVER : ASSOCIATIONS_CLIENT;
    if (config->udp_timeout_s == 0) {
        config->udp_timeout_s =
            config->timeout_s > UDP_TIMEOUT_LEAST_S ? config->timeout_s : UDP_TIMEOUT_LEAST_S;
        if (config->udp_timeout_s > UDP_TIMEOUT_MOST_S)
            config->udp_timeout_s = UDP_TIMEOUT_MOST_S;
    }
}

static enum ss_status choose_advertised(struct ss_config *config)
{
    const char *text = config->udp_advertised_address;

    if (text == NULL || ss_ip_parse(&config->udp_advertised, text) == SS_OK)
        return SS_OK;
    ss_log_error("udp_advertised_address: '%s' is not an IP address", text);
    return SS_ERR_ARGUMENT;
}

static enum ss_status choose_socket_mode(struct ss_config *config)
{
    const char *text = config->manager_socket_mode;

    if (text == NULL ||
        (*text != '\0' && strlen(text) <= 4 && strspn(text, "01234567") == strlen(text)))
        return SS_OK;
    ss_log_error("manager_socket_mode: '%s' is not a number of up to four octal digits", text);
    return SS_ERR_ARGUMENT;
}

static enum ss_status finish(struct ss_config *config, struct ss_raw *raw)
{
    enum ss_status status;

    choose_numbers(config);
    if (config->verbose &&
        ss_config_source(config, offsetof(struct ss_config, log_level)) != SS_SOURCE_LINE)
        config->log_level = SS_LOG_DEBUG;
    if (config->plugin != NULL && config->plugin[0] == '\0') {
        free(config->plugin);
        config->plugin = NULL;
    }
    if (config->method == NULL) {
        config->method = ss_text_copy(SS_METHOD_DEFAULT);
        if (config->method == NULL)
            return SS_ERR_MEMORY;
    }
    config->plugin_args = raw->plugin_args;
    raw->plugin_args = NULL;
    choose_sources(config, raw);
    status = choose_advertised(config);
    if (status == SS_OK)
        status = choose_socket_mode(config);
    if (status == SS_OK)
        status = ss_config_build_servers(config, raw);
    if (status == SS_OK && !ss_serves_ports(config->program))
        status = ss_config_build_locals(config, raw);
    return status;
}

bool ss_config_check(struct ss_config *config, struct ss_raw *raw, int *exit_code)
{
    enum ss_status status;

    memset(config, 0, sizeof *config);
    config->program = raw->program;
    config->task = raw->task;
    if (!has_required(raw, exit_code))
        return false;
    status = convert_all(config, raw);
    if (status == SS_OK)
        status = finish(config, raw);
    if (status == SS_OK)
        return true;
    if (status == SS_ERR_MEMORY)
        ss_log_error("%s", ss_status_text(status));
    ss_config_free(config);
    *exit_code = status == SS_ERR_MEMORY ? 1 : 255;
    return false;
}
