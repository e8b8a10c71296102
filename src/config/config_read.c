/* Reading a configuration: command line, then file or URL, then checks. */
#include "config/config_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/json.h"
#include "crypto/secret.h"

/* Larger than the classic 128 KiB, since one process serves thousands of ports. */
#define FILE_MAX ((size_t)16 << 20)
#define PATH_LEN 4096

static const char fallback_path[] = "/etc/shadowsocks-libev/config.json";

static const char *reason(enum ss_status status)
{
    return status == SS_ERR_ARGUMENT ? "it is a directory" : ss_status_text(status);
}

static void log_unreadable(const char *path, enum ss_status status)
{
    /* To the classic suite a directory was a file without end. */
    if (status == SS_ERR_LIMIT || status == SS_ERR_ARGUMENT)
        ss_log_error("Too large config file.");
    else
        ss_log_error("Invalid config path.");
    ss_log_error("%s: %s", path, reason(status));
}

static void free_text(char *text, size_t len)
{
    if (text != NULL)
        ss_wipe(text, len);
    free(text);
}

static enum ss_status read_file(struct ss_raw *raw, const char *path,
                                ss_config_read_file_fn *reader, bool may_be_missing)
{
    char *text = NULL;
    size_t len = 0;
    enum ss_status status = reader(&text, &len, path, FILE_MAX);

    if (status == SS_ERR_NOT_FOUND && may_be_missing)
        return status;
    if (status != SS_OK) {
        log_unreadable(path, status);
        return SS_ERR_ARGUMENT;
    }
    if (len == 0) {
        ss_log_error("Failed to read the config file.");
        ss_log_error("%s: it is empty", path);
        status = SS_ERR_FORMAT;
    } else {
        status = ss_config_json_read(raw, path, text, len);
    }
    free_text(text, len);
    if (status == SS_OK)
        status = ss_raw_set(raw, ss_setting_at(offsetof(struct ss_config, config_path)), path,
                            SS_SOURCE_LINE);
    return status;
}

/* Where programs without any argument look: below the user's folder, then for the whole system. */
static enum ss_status read_default_file(struct ss_raw *raw, ss_config_read_file_fn *reader)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *below = "/shadowsocks-libev/config.json";
    char path[PATH_LEN];

    if (base == NULL) {
        base = getenv("HOME");
        below = "/.config/shadowsocks-libev/config.json";
    }
    if (base != NULL && (size_t)snprintf(path, sizeof path, "%s%s", base, below) < sizeof path) {
        enum ss_status status = read_file(raw, path, reader, true);

        if (status != SS_ERR_NOT_FOUND)
            return status;
    }
    return read_file(raw, fallback_path, reader, false);
}

static enum ss_status read_users(struct ss_config_user **users, size_t *count, const char *path,
                                 ss_config_read_file_fn *reader)
{
    char *text = NULL;
    size_t len = 0;
    enum ss_status status = reader(&text, &len, path, FILE_MAX);

    if (status != SS_OK) {
        ss_log_error("socks5_auth_config_path: %s: %s", path, reason(status));
        return SS_ERR_ARGUMENT;
    }
    status = ss_config_auth_read(users, count, path, text, len);
    free_text(text, len);
    return status;
}

static enum ss_status read_all_users(struct ss_raw *raw, ss_config_read_file_fn *reader)
{
    const char *path = raw->text[ss_setting_at(offsetof(struct ss_config, socks5_auth_path))];
    enum ss_status status = SS_OK;

    if (path != NULL && raw->users == NULL)
        status = read_users(&raw->users, &raw->user_count, path, reader);
    for (size_t i = 0; status == SS_OK && i < raw->file_local_count; i++) {
        struct ss_config_local *local = &raw->file_locals[i];

        if (local->auth_path != NULL && local->users == NULL)
            status = read_users(&local->users, &local->user_count, local->auth_path, reader);
    }
    return status;
}

static enum ss_status read_environment(struct ss_raw *raw)
{
    size_t password = ss_setting_at(offsetof(struct ss_config, password));
    const char *value = getenv("SS_SERVER_PASSWORD");

    if (value == NULL || raw->text[password] != NULL ||
        raw->text[ss_setting_at(offsetof(struct ss_config, key))] != NULL ||
        raw->file_server_count != 0 || raw->port_server_count != 0)
        return SS_OK;
    return ss_raw_set(raw, password, value, SS_SOURCE_ENVIRONMENT);
}

static enum ss_status read_rest(struct ss_raw *raw, bool bare, ss_config_read_file_fn *reader)
{
    const char *given = raw->text[ss_setting_at(offsetof(struct ss_config, config_path))];
    enum ss_status status = SS_OK;

    ss_json_start();
    if (given != NULL) {
        char *path = ss_text_copy(given);

        if (path == NULL)
            return SS_ERR_MEMORY;
        status = strncmp(path, "ss://", 5) == 0 ? ss_config_url_read(raw, path)
                                                : read_file(raw, path, reader, false);
        ss_secret_free(path);
    } else if (bare && raw->program != SS_PROGRAM_MANAGER) {
        status = read_default_file(raw, reader);
    }
    if (status == SS_OK)
        status = read_all_users(raw, reader);
    if (status == SS_OK)
        status = read_environment(raw);
    return status;
}

bool ss_config_read_again(struct ss_config *config, enum ss_program program, int argc, char **argv,
                          ss_config_read_file_fn *reader)
{
    struct ss_raw raw = {.program = program, .again = true};
    int exit_code;
    bool checked;

    memset(config, 0, sizeof *config);
    checked = ss_args_read(&raw, argc, argv) == SS_ARGS_OK &&
              read_rest(&raw, argc <= 1, reader) == SS_OK &&
              ss_config_check(config, &raw, &exit_code);
    ss_raw_clear(&raw);
    return checked;
}

bool ss_config_read(struct ss_config *config, enum ss_program program, int argc, char **argv,
                    ss_config_read_file_fn *reader, int *exit_code)
{
    struct ss_raw raw = {.program = program};
    bool checked = false;

    memset(config, 0, sizeof *config);
    switch (ss_args_read(&raw, argc, argv)) {
    case SS_ARGS_HELP:
        ss_usage_print(program);
        *exit_code = 0;
        break;
    case SS_ARGS_LIST:
        ss_settings_print(program, stdout);
        *exit_code = 0;
        break;
    case SS_ARGS_GEN_KEY:
        *exit_code = ss_key_print(raw.gen_key_method, stdout) ? 0 : 255;
        break;
    case SS_ARGS_USAGE:
        ss_usage_print(program);
        *exit_code = 1;
        break;
    case SS_ARGS_FATAL:
        *exit_code = 255;
        break;
    case SS_ARGS_OK:
        if (raw.task != SS_TASK_SERVE)
            ss_log_set_level(SS_LOG_WARN); /* stdout is for what was asked for */
        for (size_t i = 0; i < raw.said_count; i++)
            ss_log_info("%s", raw.said[i]);
        *exit_code = 255;
        checked =
            read_rest(&raw, argc <= 1, reader) == SS_OK && ss_config_check(config, &raw, exit_code);
        break;
    }
    ss_raw_clear(&raw);
    return checked;
}
