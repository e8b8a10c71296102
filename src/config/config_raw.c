/* Given values as texts: keeping, growing and clearing them. */
#include "config/config_internal.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

char *ss_text_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void ss_secret_free(char *text)
{
    if (text != NULL)
        ss_wipe(text, strlen(text));
    free(text);
}

void ss_words_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        ss_secret_free(words[i]);
    free(words);
}

enum ss_status ss_words_add(char ***words, size_t *count, const char *word)
{
    char **grown = realloc(*words, (*count + 2) * sizeof *grown);

    if (grown == NULL)
        return SS_ERR_MEMORY;
    *words = grown;
    grown[*count + 1] = NULL;
    grown[*count] = ss_text_copy(word);
    if (grown[*count] == NULL)
        return SS_ERR_MEMORY;
    ++*count;
    return SS_OK;
}

enum ss_status ss_words_copy(char ***out, char *const *words)
{
    enum ss_status status = SS_OK;
    size_t count = 0;

    for (size_t i = 0; status == SS_OK && words != NULL && words[i] != NULL; i++)
        status = ss_words_add(out, &count, words[i]);
    return status;
}

void *ss_array_grow(void *array, size_t *count, size_t element_size)
{
    size_t room = *count;
    char *grown = array;

    /* The room doubles, so it is full exactly when the count is a power of two (or nothing). */
    if ((room & (room - 1)) == 0) {
        if (room > SIZE_MAX / 2 / element_size)
            return NULL;
        grown = realloc(array, (room == 0 ? 1 : room * 2) * element_size);
        if (grown == NULL)
            return NULL;
    }
    memset(grown + *count * element_size, 0, element_size);
    ++*count;
    return grown;
}

static void users_free(struct ss_config_user *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(users[i].name);
        ss_secret_free(users[i].password);
    }
    free(users);
}

void ss_config_identities_free(struct ss_config_identity *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(list[i].name);
        ss_secret_free(list[i].password);
        free(list[i].next);
    }
    free(list);
}

void ss_config_server_clear(struct ss_config_server *server)
{
    free(server->addresses);
    free(server->method);
    ss_secret_free(server->password);
    ss_secret_free(server->key);
    free(server->plugin);
    ss_secret_free(server->plugin_opts); /* plugins have passwords too */
    ss_words_free(server->plugin_args);
    free(server->name);
    ss_config_identities_free(server->identities, server->identity_count);
    memset(server, 0, sizeof *server);
}

void ss_config_local_clear(struct ss_config_local *local)
{
    free(local->address);
    free(local->udp_address);
    free(local->auth_path);
    users_free(local->users, local->user_count);
    memset(local, 0, sizeof *local);
}

static void servers_free(struct ss_config_server *servers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ss_config_server_clear(&servers[i]);
    free(servers);
}

static void locals_free(struct ss_config_local *locals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ss_config_local_clear(&locals[i]);
    free(locals);
}

void ss_raw_clear(struct ss_raw *raw)
{
    for (size_t row = 0; row < SS_SETTINGS_MAX; row++)
        ss_secret_free(raw->text[row]);
    for (size_t i = 0; i < raw->server_count; i++)
        free(raw->servers[i]);
    for (size_t i = 0; i < raw->address_count; i++)
        free(raw->addresses[i]);
    ss_words_free(raw->plugin_args);
    servers_free(raw->port_servers, raw->port_server_count);
    servers_free(raw->file_servers, raw->file_server_count);
    locals_free(raw->file_locals, raw->file_local_count);
    free(raw->dscp);
    users_free(raw->users, raw->user_count);
    ss_config_identities_free(raw->identities, raw->identity_count);
    memset(raw, 0, sizeof *raw);
}

/* Whether a file may still say something: the option was not given, or its number was nothing. */
static bool is_open(const struct ss_raw *raw, size_t row, enum ss_source source)
{
    if (raw->text[row] == NULL || source >= (enum ss_source)raw->source[row])
        return true;
    return ss_settings[row].kind == SS_KIND_LOOSE && strtol(raw->text[row], NULL, 10) == 0;
}

enum ss_status ss_raw_set(struct ss_raw *raw, size_t row, const char *text, enum ss_source source)
{
    char *copy;

    if (!is_open(raw, row, source))
        return SS_OK;
    copy = ss_text_copy(text);
    if (copy == NULL)
        return SS_ERR_MEMORY;
    ss_secret_free(raw->text[row]);
    raw->text[row] = copy;
    raw->source[row] = (uint8_t)source;
    return SS_OK;
}

void ss_config_free(struct ss_config *config)
{
    char **field;

    for (size_t row = 0; row < ss_setting_count; row++) {
        const struct ss_setting *setting = &ss_settings[row];

        if (setting->kind != SS_KIND_TEXT && setting->kind != SS_KIND_SECRET &&
            setting->kind != SS_KIND_CONFIG)
            continue;
        field = (char **)(void *)((char *)config + setting->offset);
        ss_secret_free(*field);
    }
    ss_words_free(config->plugin_args);
    servers_free(config->servers, config->server_count);
    locals_free(config->locals, config->local_count);
    free(config->hosts);
    memset(config, 0, sizeof *config);
}
