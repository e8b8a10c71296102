/* Lines between ss-manager and the ss-server that serves its ports. */
#include "control/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "config/json.h"
#include "control/lines.h"

static const char *const verbs[] = {
    [SS_WIRE_ADD] = "add",          [SS_WIRE_REMOVE] = "remove", [SS_WIRE_ADD_USER] = "adduser",
    [SS_WIRE_DEL_USER] = "deluser", [SS_WIRE_STATS] = "stats",   [SS_WIRE_LIST] = "list",
};

static const char *const results[] = {
    [SS_WIRE_OK] = "ok", [SS_WIRE_REFUSED] = "refused", [SS_WIRE_NO_PORT] = "no port"};

#define VERB_COUNT   (sizeof verbs / sizeof verbs[0])
#define RESULT_COUNT (sizeof results / sizeof results[0])

static void set_number(json_t *object, const char *key, uint64_t number)
{
    json_object_set_new(object, key, json_integer((json_int_t)(number & INT64_MAX)));
}

static uint64_t get_number(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));

    return number > 0 ? (uint64_t)number : 0;
}

char *ss_wire_request_text(uint64_t id, enum ss_wire_verb verb, const struct ss_port_spec *spec)
{
    json_t *object = json_object();

    set_number(object, "id", id);
    json_object_set_new(object, verbs[verb],
                        spec != NULL ? ss_port_spec_json(spec) : json_object());
    return ss_line_text(object);
}

enum ss_status ss_wire_request_read(struct ss_wire_request *request, char *line, size_t len,
                                    struct ss_reason *reason)
{
    struct ss_json_error error;
    json_t *object = ss_json_parse(line, len, &error);
    enum ss_status status = SS_OK;

    memset(request, 0, sizeof *request);
    request->verb = SS_WIRE_UNKNOWN;
    snprintf(reason->text, sizeof reason->text, "it is not a request");
    request->id = get_number(object, "id");
    for (size_t i = 0; i < VERB_COUNT && request->verb == SS_WIRE_UNKNOWN; i++) {
        const json_t *value = json_object_get(object, verbs[i]);

        if (value == NULL)
            continue;
        request->verb = (enum ss_wire_verb)i;
        status = ss_port_spec_read(&request->spec, value, reason);
        if (status == SS_OK && request->spec.port == 0 && i != SS_WIRE_STATS && i != SS_WIRE_LIST) {
            snprintf(reason->text, sizeof reason->text, "'server_port' is missing");
            status = SS_ERR_FORMAT;
        }
    }
    json_decref(object);
    if (status == SS_ERR_MEMORY)
        return status;
    return status == SS_OK && request->id != 0 && request->verb != SS_WIRE_UNKNOWN ? SS_OK
                                                                                   : SS_ERR_FORMAT;
}

void ss_wire_request_clear(struct ss_wire_request *request)
{
    ss_port_spec_clear(&request->spec);
    memset(request, 0, sizeof *request);
}

void ss_wire_answer_begin(struct ss_wire_answer *answer, uint64_t id)
{
    answer->object = json_object();
    answer->stats = NULL;
    if (id != 0) {
        set_number(answer->object, "id", id);
        return;
    }
    json_object_set_new(answer->object, "hello", json_string("ss-server"));
    json_object_set_new(answer->object, "version", json_string(SS_VERSION));
    set_number(answer->object, "protocol", SS_WIRE_PROTOCOL);
}

void ss_wire_answer_result(struct ss_wire_answer *answer, enum ss_wire_result result,
                           const char *text)
{
    json_object_set_new(answer->object, "result", json_string(results[result]));
    if (text != NULL)
        json_object_set_new(answer->object, "reason", json_string(text));
}

void ss_wire_answer_use(struct ss_wire_answer *answer, const struct ss_wire_use *use)
{
    json_t *object = json_object();

    if (answer->stats == NULL) {
        answer->stats = json_array();
        json_object_set_new(answer->object, "stats", answer->stats);
    }
    set_number(object, "server_port", use->port);
    if (use->user != NULL)
        json_object_set_new(object, "user", json_string(use->user));
    set_number(object, "received", use->rx_bytes);
    set_number(object, "sent", use->tx_bytes);
    if (use->user == NULL)
        set_number(object, "total", use->total);
    set_number(object, "sessions", use->sessions);
    if (use->quota_used != 0)
        set_number(object, "quota_used", use->quota_used);
    if (use->quota_period_end > 0)
        set_number(object, "quota_period_end", (uint64_t)use->quota_period_end);
    if (use->state != NULL)
        json_object_set_new(object, "state", json_string(use->state));
    json_array_append_new(answer->stats, object);
}

char *ss_wire_answer_text(struct ss_wire_answer *answer)
{
    char *text = ss_json_dump(answer->object);

    memset(answer, 0, sizeof *answer);
    return text;
}

static enum ss_status take_uses(struct ss_wire_heard *heard, const json_t *list)
{
    size_t count = json_array_size(list);

    if (count == 0)
        return SS_OK;
    heard->uses = calloc(count, sizeof *heard->uses);
    if (heard->uses == NULL)
        return SS_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        uint64_t port = get_number(object, "server_port");

        if (port == 0 || port > UINT16_MAX)
            return SS_ERR_FORMAT;
        heard->uses[heard->use_count++] = (struct ss_wire_use){
            .port = (uint16_t)port,
            .user = json_string_value(json_object_get(object, "user")),
            .rx_bytes = get_number(object, "received"),
            .tx_bytes = get_number(object, "sent"),
            .total = get_number(object, "total"),
            .sessions = get_number(object, "sessions"),
            .quota_used = get_number(object, "quota_used"),
            .quota_period_end = (int64_t)get_number(object, "quota_period_end"),
            .state = json_string_value(json_object_get(object, "state"))};
    }
    return SS_OK;
}

enum ss_status ss_wire_answer_read(struct ss_wire_heard *heard, char *line, size_t len)
{
    struct ss_json_error error;
    const char *result, *reason;

    memset(heard, 0, sizeof *heard);
    heard->document = ss_json_parse(line, len, &error);
    if (json_object_get(heard->document, "hello") != NULL) {
        heard->hello = get_number(heard->document, "protocol") == SS_WIRE_PROTOCOL;
        return heard->hello ? SS_OK : SS_ERR_UNSUPPORTED;
    }
    heard->id = get_number(heard->document, "id");
    result = json_string_value(json_object_get(heard->document, "result"));
    reason = json_string_value(json_object_get(heard->document, "reason"));
    if (heard->id == 0 || result == NULL)
        return SS_ERR_FORMAT;
    heard->result = SS_WIRE_REFUSED;
    for (size_t i = 0; i < RESULT_COUNT; i++)
        if (strcmp(result, results[i]) == 0)
            heard->result = (enum ss_wire_result)i;
    snprintf(heard->reason.text, sizeof heard->reason.text, "%s", reason != NULL ? reason : "");
    return take_uses(heard, json_object_get(heard->document, "stats"));
}

void ss_wire_heard_clear(struct ss_wire_heard *heard)
{
    json_decref(heard->document);
    free(heard->uses);
    memset(heard, 0, sizeof *heard);
}
