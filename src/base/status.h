/*
 * What an operation came to. One enumeration serves all layers, so that a result can be passed up
 * unchanged and is named in logs the same everywhere.
 */
#ifndef SS_BASE_STATUS_H
#define SS_BASE_STATUS_H

enum ss_status {
    SS_OK = 0,
    /* Not errors: the message is incomplete, or the output is full. Call again with more. */
    SS_NEED_INPUT,
    SS_NEED_ROOM,
    /* What a peer sent was wrong. */
    SS_ERR_AUTH,   /* a tag did not verify, or no key fits */
    SS_ERR_FORMAT, /* not in the protocol's form */
    SS_ERR_STALE,  /* a time stamp too far from our clock */
    SS_ERR_REPLAY, /* a salt or packet that was seen before */
    SS_ERR_CLOCK,  /* it may have been seen: our clock was set back behind its time stamp */
    /* What we were given or asked for was wrong. */
    SS_ERR_KEY,      /* a key of the wrong length or not base64 */
    SS_ERR_ARGUMENT, /* any other bad setting */
    SS_ERR_UNSUPPORTED,
    SS_ERR_NOT_FOUND,
    /* What the system said. */
    SS_ERR_MEMORY,
    SS_ERR_RANDOM,
    SS_ERR_PERMISSION,
    SS_ERR_IN_USE,
    SS_ERR_LIMIT, /* descriptors, slots or another budget are used up */
    SS_ERR_TIMEOUT,
    SS_ERR_REFUSED,
    SS_ERR_UNREACHABLE,
    SS_ERR_RESET,
    SS_ERR_IO, /* any other error of the system; logged where it was met */
    SS_STATUS_COUNT
};

/* On functions whose result must not be ignored. */
#define SS_CHECKED __attribute__((warn_unused_result))

/* A few words for logs, never NULL. */
const char *ss_status_text(enum ss_status status);

#endif
