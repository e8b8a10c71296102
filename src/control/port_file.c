/* A port as a configuration file. */
#include "control/port_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "config/json.h"
#include "crypto/secret.h"

struct writer {
    char *text;
    size_t len, room;
    bool failed;
};

static void put(struct writer *writer, const char *text)
{
    size_t len = strlen(text);

    if (writer->failed)
        return;
    if (writer->len + len + 1 > writer->room) {
        size_t room = (writer->len + len + 1) * 2;
        char *grown = malloc(room);

        if (grown == NULL) {
            writer->failed = true;
            return;
        }
        memcpy(grown, writer->text != NULL ? writer->text : "", writer->len);
        if (writer->text != NULL)
            ss_wipe(writer->text, writer->room);
        free(writer->text);
        writer->text = grown;
        writer->room = room;
    }
    memcpy(writer->text + writer->len, text, len + 1);
    writer->len += len;
}

/* A member on a line of its own; the value is given back. */
static void put_value(struct writer *writer, const char *name, json_t *value)
{
    char *text = ss_json_dump(value);

    if (text == NULL) {
        writer->failed = true;
        return;
    }
    put(writer, name);
    put(writer, text);
    ss_json_text_free(text);
}

static void put_text(struct writer *writer, const char *name, const char *value)
{
    if (value != NULL)
        put_value(writer, name, json_string(value));
}

static void put_choice(struct writer *writer, const char *name, enum ss_choice choice,
                       bool default_on)
{
    if (choice != SS_CHOICE_NONE || default_on)
        put_value(writer, name, json_boolean(choice != SS_CHOICE_OFF));
}

char *ss_port_file_text(const struct ss_port_spec *spec, const struct ss_config *config)
{
    static const char *const modes[] = {"tcp_only", "tcp_and_udp", "udp_only"};
    const struct ss_config_server *server = &spec->server;
    struct writer writer = {0};

    put(&writer, "{");
    put_value(&writer, "\n\"server_port\":", json_integer(spec->port));
    put_text(&writer, ",\n\"password\":", server->password);
    put_text(&writer, ",\n\"key\":", server->key);
    put_text(&writer, ",\n\"method\":", server->method != NULL ? server->method : config->method);
    put_choice(&writer, ",\n\"fast_open\": ", spec->fast_open, config->fast_open);
    put_choice(&writer, ",\n\"no_delay\": ", spec->no_delay, config->no_delay);
    put_choice(&writer, ",\n\"reuse_port\": ", SS_CHOICE_NONE, config->reuse_port);
    put_text(&writer, ",\n\"mode\":", server->mode_given ? modes[server->mode] : NULL);
    put_text(&writer, ",\n\"plugin\":", server->plugin);
    put_text(&writer, ",\n\"plugin_opts\":", server->plugin_opts);
    put_text(&writer,
             ",\n\"plugin_mode\":", server->plugin_mode_given ? modes[server->plugin_mode] : NULL);
    if (server->plugin_args != NULL) {
        json_t *words = json_array();

        for (size_t i = 0; server->plugin_args[i] != NULL; i++)
            json_array_append_new(words, json_string(server->plugin_args[i]));
        put_value(&writer, ",\n\"plugin_args\":", words);
    }
    if (server->identity_count != 0) {
        json_t *users = json_array();

        for (size_t i = 0; i < server->identity_count; i++)
            json_array_append_new(users, ss_port_user_json(&server->identities[i]));
        put_value(&writer, ",\n\"users\":", users);
    }
    put(&writer, "\n}\n");
    if (!writer.failed)
        return writer.text;
    if (writer.text != NULL)
        ss_wipe(writer.text, writer.room);
    free(writer.text);
    return NULL;
}
