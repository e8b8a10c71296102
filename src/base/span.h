/* Borrowed bytes: where they begin and how many there are. Neither kind owns anything. */
#ifndef SS_BASE_SPAN_H
#define SS_BASE_SPAN_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that may be changed in place. */
struct ss_span {
    uint8_t *ptr;
    size_t len;
};

/* Bytes that are only looked at. */
struct ss_view {
    const uint8_t *ptr;
    size_t len;
};

#endif
