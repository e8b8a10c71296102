/* A datagram to the manager is a command or is refused with a reason; a port that it adds comes out
 * of the state file as it went in, and as a file and in a list it is JSON by itself. */
#include "fuzz/fuzz.h"

#include <string.h>

#include <jansson.h>

#include "base/span.h"
#include "config/json.h"
#include "control/port_file.h"
#include "control/reply.h"
#include "control/request.h"
#include "control/state_file.h"
#include "control/wire.h"

static void check_state(const struct ss_port_spec *spec)
{
    char *first = ss_record_text(SS_RECORD_ADD, spec), *again, *at;
    size_t len;
    struct ss_record record;
    bool torn;

    CHECK(first != NULL);
    len = strlen(first);
    CHECK(len != 0 && first[len - 1] == '\n' && memchr(first, '\n', len - 1) == NULL);
    at = strdup(first);
    CHECK(at != NULL);
    again = at;
    CHECK(ss_record_next(&record, &at, &len, &torn) && len == 0 && !torn);
    free(again);
    CHECK(record.status == SS_OK && record.kind == SS_RECORD_ADD);
    again = ss_record_text(SS_RECORD_ADD, &record.spec);
    CHECK(again != NULL && strcmp(first, again) == 0);
    ss_port_spec_clear(&record.spec);
    free(first);
    free(again);
}

static void check_texts(const struct ss_port_spec *spec)
{
    struct ss_config config = {.method = (char[]){"aes-256-gcm"}};
    char *file = ss_port_file_text(spec, &config);
    struct ss_reply reply;
    struct ss_view datagram;
    json_t *document;

    CHECK(file != NULL);
    document = json_loads(file, JSON_REJECT_DUPLICATES, NULL);
    CHECK(json_is_object(document));
    json_decref(document);
    free(file);

    ss_reply_begin_list(&reply);
    ss_reply_put_port(&reply, spec, config.method, NULL);
    CHECK(ss_reply_end(&reply) == SS_OK && reply.count == 1);
    datagram = ss_reply_datagram(&reply, 0);
    CHECK(datagram.len <= SS_REPLY_LIST_MAX);
    document = json_loadb((const char *)datagram.ptr, datagram.len, 0, NULL);
    CHECK(json_array_size(document) == 1);
    json_decref(document);
    ss_reply_free(&reply);
}

static void read_request(const uint8_t *bytes, size_t len)
{
    char *copy = malloc(len != 0 ? len : 1);
    struct ss_request request;
    struct ss_reason reason;
    enum ss_status status;

    CHECK(copy != NULL);
    if (len != 0)
        memcpy(copy, bytes, len);
    status = ss_request_parse(&request, copy, len, &reason);
    free(copy);
    CHECK(status == SS_OK || reason.text[0] != '\0');
    CHECK(status == SS_OK || status == SS_ERR_FORMAT || status == SS_ERR_ARGUMENT);
    if (status == SS_OK && request.command == SS_COMMAND_ADD) {
        CHECK(request.spec.port != 0 && request.spec.server.address_count == 0);
        check_state(&request.spec);
        check_texts(&request.spec);
    }
    if (status == SS_OK &&
        (request.command == SS_COMMAND_ADD_USER || request.command == SS_COMMAND_DEL_USER))
        CHECK(request.spec.port != 0 && request.spec.server.identity_count != 0);
    ss_request_clear(&request);
}

/* The lines between manager and server, and those of the state file, come from files and pipes. */
static void read_lines(const uint8_t *bytes, size_t len)
{
    char *copy = malloc(len != 0 ? len : 1), *at = copy;
    struct ss_wire_request request;
    struct ss_wire_heard heard;
    struct ss_reason reason;
    struct ss_record record;
    size_t left = len;
    bool torn;

    CHECK(copy != NULL);
    if (len != 0)
        memcpy(copy, bytes, len);
    if (ss_wire_request_read(&request, copy, len, &reason) == SS_OK)
        CHECK(request.id != 0 && request.verb != SS_WIRE_UNKNOWN);
    ss_wire_request_clear(&request);
    if (len != 0)
        memcpy(copy, bytes, len);
    if (ss_wire_answer_read(&heard, copy, len) == SS_OK)
        CHECK(heard.hello || heard.id != 0);
    ss_wire_heard_clear(&heard);
    if (len != 0)
        memcpy(copy, bytes, len);
    while (ss_record_next(&record, &at, &left, &torn)) {
        CHECK(left < len);
        ss_port_spec_clear(&record.spec);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static bool started;

    if (!started)
        ss_json_start();
    started = true;
    if (len > SS_REQUEST_MAX)
        return 0;
    read_request(bytes, len);
    read_lines(bytes, len);
    return 0;
}
