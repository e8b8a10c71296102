/* The table of settings as JSON. */
#include "config/config_internal.h"

#include <jansson.h>

static const char *const kinds[] = {
    [SS_KIND_TEXT] = "text",
    [SS_KIND_SECRET] = "secret",
    [SS_KIND_FLAG] = "flag",
    [SS_KIND_NUMBER] = "number",
    [SS_KIND_LOOSE] = "loose number",
    [SS_KIND_PORT] = "port",
    [SS_KIND_MODE] = "mode",
    [SS_KIND_LEVEL] = "level",
    [SS_KIND_MARK] = "mark",
    [SS_KIND_BALANCE] = "balance",
    [SS_KIND_SERVERS] = "hosts",
    [SS_KIND_ADDRESSES] = "addresses",
    [SS_KIND_PLUGIN_ARGS] = "texts",
    [SS_KIND_PORT_PASSWORD] = "passwords by port",
    [SS_KIND_SERVER_LIST] = "servers",
    [SS_KIND_LOCAL_LIST] = "locals",
    [SS_KIND_SOCKS5_AUTH] = "users",
    [SS_KIND_IDENTITIES] = "identities",
    [SS_KIND_DNS] = "name servers",
    [SS_KIND_DSCP] = "DSCP by port",
    [SS_KIND_LABEL] = "ignored",
    [SS_KIND_NOT_YET] = "ignored with a warning",
    [SS_KIND_REFUSED] = "refused",
    [SS_KIND_ONE_TIME] = "refused",
    [SS_KIND_TCP_UDP] = "mode switch",
    [SS_KIND_UDP_ONLY] = "mode switch",
    [SS_KIND_CONFIG] = "configuration file",
    [SS_KIND_HELP] = "task",
    [SS_KIND_LIST_SETTINGS] = "task",
    [SS_KIND_CHECK_CONFIG] = "task",
    [SS_KIND_PRINT_URL] = "task",
    [SS_KIND_GEN_KEY] = "task",
};

static void put_text(json_t *object, const char *member, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, member, json_string(text));
}

/* Another option for the same setting, or NULL. */
static const char *alias_of(const struct ss_setting *setting)
{
    for (size_t row = 0; setting->offset != UINT16_MAX && row < ss_setting_count; row++)
        if (ss_settings[row].kind == SS_KIND_ALIAS && ss_settings[row].offset == setting->offset)
            return ss_settings[row].option;
    return NULL;
}

static json_t *setting_json(const struct ss_setting *setting, enum ss_program program)
{
    const char letter[2] = {setting->letter, '\0'};
    bool on_line = (setting->line & program) != 0, ignored = (setting->eat & program) != 0;
    bool in_file = (setting->file & program) != 0 || setting->kind == SS_KIND_LABEL;
    json_t *object;

    if (setting->kind == SS_KIND_ALIAS) /* shown with what it stands for */
        return NULL;
    if (!on_line && !ignored && !(in_file && setting->key != NULL))
        return NULL;
    object = json_object();
    if (in_file) {
        put_text(object, "key", setting->key);
        put_text(object, "alias", setting->alias);
    }
    if (on_line || ignored) {
        put_text(object, "option", setting->option);
        if (setting->letter != 0)
            put_text(object, "letter", letter);
        put_text(object, "argument", setting->argument);
    }
    put_text(object, "option_alias", alias_of(setting));
    put_text(object, "kind", kinds[setting->kind]);
    if (setting->kind == SS_KIND_NUMBER) {
        json_object_set_new(object, "min", json_integer(setting->min));
        json_object_set_new(object, "max", json_integer(setting->max));
    }
    if (ignored)
        json_object_set_new(object, "ignored", json_true());
    return object;
}

void ss_settings_print(enum ss_program program, FILE *out)
{
    json_t *list = json_array();

    for (size_t row = 0; row < ss_setting_count; row++) {
        json_t *object = setting_json(&ss_settings[row], program);

        if (object != NULL)
            json_array_append_new(list, object);
    }
    json_dumpf(list, out, JSON_INDENT(1));
    fputc('\n', out);
    fflush(out);
    json_decref(list);
}
