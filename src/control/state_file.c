/* Records of the state file. */
#include "control/state_file.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "config/json.h"
#include "control/lines.h"

static const char *const names[] = {
    [SS_RECORD_HEAD] = "ss-manager",  [SS_RECORD_ADD] = "add",
    [SS_RECORD_REMOVE] = "remove",    [SS_RECORD_ADD_USER] = "adduser",
    [SS_RECORD_DEL_USER] = "deluser", [SS_RECORD_USED] = "used",
    [SS_RECORD_END] = "end",
};

char *ss_record_text(enum ss_record_kind kind, const struct ss_port_spec *spec)
{
    json_t *object = json_object();

    json_object_set_new(object, names[kind],
                        spec != NULL ? ss_port_spec_json(spec) : json_integer(1));
    return ss_line_text(object);
}

static enum ss_status read_record(struct ss_record *record, char *line, size_t len)
{
    struct ss_json_error error;
    struct ss_reason reason;
    json_t *object = ss_json_parse(line, len, &error);
    enum ss_status status = json_is_object(object) ? SS_OK : SS_ERR_FORMAT;

    record->kind = SS_RECORD_UNKNOWN;
    for (size_t i = 0; status == SS_OK && i < sizeof names / sizeof names[0]; i++) {
        const json_t *value = json_object_get(object, names[i]);

        if (value == NULL)
            continue;
        record->kind = (enum ss_record_kind)i;
        if (i == SS_RECORD_HEAD || i == SS_RECORD_END)
            break;
        status = ss_port_spec_read(&record->spec, value, &reason);
        if (status == SS_OK && record->spec.port == 0)
            status = SS_ERR_FORMAT;
        break;
    }
    json_decref(object);
    if (status != SS_OK)
        ss_port_spec_clear(&record->spec);
    return status;
}

bool ss_record_next(struct ss_record *record, char **text, size_t *len, bool *torn)
{
    char *end = *len != 0 ? memchr(*text, '\n', *len) : NULL;
    size_t line = end != NULL ? (size_t)(end - *text) : 0;

    memset(record, 0, sizeof *record);
    *torn = end == NULL && *len != 0;
    if (end == NULL)
        return false;
    record->status = read_record(record, *text, line);
    *text += line + 1;
    *len -= line + 1;
    return true;
}
