/* Answers that may not fit one datagram. */
#include "control/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/span.h"
#include "config/json.h"
#include "crypto/secret.h"

struct ss_reply_form {
    const char *head, *first, *between, *tail, *end_of_none;
    size_t limit;
};

/* Byte for byte as the classic manager has them. */
static const struct ss_reply_form list_form = {"[",   "\n\t", ",\n\t",
                                               "\n]", "\n]",  SS_REPLY_LIST_MAX};
static const struct ss_reply_form ping_form = {"stat: {", "", ",", "}", "}", SS_REPLY_PING_MAX};

static void put(struct ss_reply *reply, const char *text, size_t len)
{
    if (reply->status != SS_OK)
        return;
    if (reply->len + len > reply->room) {
        size_t room = (reply->len + len) * 2;
        char *grown = malloc(room);

        if (grown == NULL) {
            reply->status = SS_ERR_MEMORY;
            return;
        }
        if (reply->text != NULL) {
            memcpy(grown, reply->text, reply->len);
            ss_wipe(reply->text, reply->room);
            free(reply->text);
        }
        reply->text = grown;
        reply->room = room;
    }
    memcpy(reply->text + reply->len, text, len);
    reply->len += len;
}

static void put_text(struct ss_reply *reply, const char *text)
{
    put(reply, text, strlen(text));
}

static void end_datagram(struct ss_reply *reply)
{
    size_t *grown = realloc(reply->ends, (reply->count + 1) * sizeof *grown);

    if (grown == NULL) {
        reply->status = SS_ERR_MEMORY;
        return;
    }
    put_text(reply, reply->entries != 0 ? reply->form->tail : reply->form->end_of_none);
    reply->ends = grown;
    grown[reply->count++] = reply->len;
    reply->entries = 0;
}

static void put_entry(struct ss_reply *reply, const char *text, size_t len)
{
    const struct ss_reply_form *form = reply->form;
    size_t begin = reply->count != 0 ? reply->ends[reply->count - 1] : 0;
    size_t around = strlen(form->between) + strlen(form->tail);

    if (reply->entries != 0 && reply->len - begin + len + around > form->limit) {
        end_datagram(reply);
        put_text(reply, form->head);
    }
    put_text(reply, reply->entries == 0 ? form->first : form->between);
    put(reply, text, len);
    reply->entries++;
}

/* Takes the object over. */
static void put_json(struct ss_reply *reply, json_t *object)
{
    char *text = ss_json_dump(object);

    if (text == NULL) {
        reply->status = SS_ERR_MEMORY;
        return;
    }
    put_entry(reply, text, strlen(text));
    ss_json_text_free(text);
}

static void begin(struct ss_reply *reply, const struct ss_reply_form *form)
{
    memset(reply, 0, sizeof *reply);
    reply->form = form;
    put_text(reply, form->head);
}

void ss_reply_begin_list(struct ss_reply *reply)
{
    begin(reply, &list_form);
}

void ss_reply_begin_ping(struct ss_reply *reply)
{
    begin(reply, &ping_form);
}

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, key, json_string(text));
}

static void set_number(json_t *object, const char *key, uint64_t number)
{
    json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void set_limits(json_t *object, const struct ss_config_limits *limits)
{
    if (limits->quota != 0)
        set_number(object, "quota", limits->quota);
    if (limits->quota_period_s != 0)
        set_number(object, "quota_period", limits->quota_period_s);
    if (limits->quota != 0)
        set_number(object, "quota_used", limits->quota_used);
    if (limits->expires != 0)
        set_number(object, "expires", (uint64_t)limits->expires);
    if (limits->max_connections != 0)
        set_number(object, "max_connections", limits->max_connections);
    if (limits->rate != 0)
        set_number(object, "rate", limits->rate);
}

void ss_reply_put_port(struct ss_reply *reply, const struct ss_port_spec *spec, const char *method,
                       const char *state)
{
    const struct ss_config_server *server = &spec->server;
    json_t *object = json_object();
    char port[8];

    /* The classic members, the port a text among them, and behind them what it does not have. */
    snprintf(port, sizeof port, "%u", spec->port);
    set_text(object, "server_port", port);
    set_text(object, "password", server->password != NULL ? server->password : "");
    set_text(object, "method", server->method != NULL ? server->method : method);
    if (server->identity_count != 0)
        set_number(object, "user_count", server->identity_count);
    set_limits(object, &server->limits);
    set_text(object, "state", state);
    put_json(reply, object);
}

void ss_reply_put_total(struct ss_reply *reply, uint16_t port, uint64_t total)
{
    char text[48];
    int len = snprintf(text, sizeof text, "\"%u\":%" PRIu64, port, total);

    put_entry(reply, text, (size_t)len);
}

void ss_reply_put_user(struct ss_reply *reply, uint16_t port, const struct ss_config_identity *user,
                       const struct ss_user_use *use)
{
    json_t *object = json_object();

    if (port != 0)
        set_number(object, "server_port", port);
    set_text(object, "name", user->name);
    set_number(object, "received", use->rx_bytes);
    set_number(object, "sent", use->tx_bytes);
    set_number(object, "sessions", use->sessions);
    set_limits(object, &user->limits);
    set_text(object, "state", use->state);
    put_json(reply, object);
}

enum ss_status ss_reply_end(struct ss_reply *reply)
{
    end_datagram(reply);
    return reply->status;
}

struct ss_view ss_reply_datagram(const struct ss_reply *reply, size_t index)
{
    size_t begin_at = index != 0 ? reply->ends[index - 1] : 0;

    return (struct ss_view){(const uint8_t *)reply->text + begin_at, reply->ends[index] - begin_at};
}

void ss_reply_free(struct ss_reply *reply)
{
    if (reply->text != NULL)
        ss_wipe(reply->text, reply->room);
    free(reply->text);
    free(reply->ends);
    memset(reply, 0, sizeof *reply);
}
