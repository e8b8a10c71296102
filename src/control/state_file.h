/*
 * The state file of ss-manager: a record a line, each a JSON object, in the order in which things
 * happened. A line that is not whole is one that was being written when the manager was killed.
 */
#ifndef SS_CONTROL_STATE_FILE_H
#define SS_CONTROL_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "config/port_spec.h"

enum ss_record_kind {
    SS_RECORD_HEAD,     /* the first line: what file this is */
    SS_RECORD_ADD,      /* a port, in place of one with the same number */
    SS_RECORD_REMOVE,   /* a port */
    SS_RECORD_ADD_USER, /* users of a port, in server.identities */
    SS_RECORD_DEL_USER,
    SS_RECORD_USED,   /* of the quotas of a port and its users; also of one of the configuration */
    SS_RECORD_END,    /* an orderly end */
    SS_RECORD_UNKNOWN /* of a later version */
};

/* A line with its end, to be wiped and freed; NULL when memory is out. `spec` may be NULL where it
 * says nothing. */
char *ss_record_text(enum ss_record_kind kind, const struct ss_port_spec *spec);

/*
 * The next record of a text and how far it reaches. False at the end, and for a last line without
 * its end, which *torn tells. A line that can't be read has *status other than SS_OK and *spec
 * empty. The caller clears *spec.
 */
struct ss_record {
    enum ss_record_kind kind;
    struct ss_port_spec spec;
    enum ss_status status;
};
bool ss_record_next(struct ss_record *record, char **text, size_t *len, bool *torn);

#endif
