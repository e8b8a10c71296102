/* What program and helper say to each other, and the helper's parts; for this folder alone. */
#ifndef SS_SYS_HELPER_INTERNAL_H
#define SS_SYS_HELPER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include "sys/helper.h"

/*
 * One message a request and one a notice, over a socket that keeps their bounds. Both ends are of
 * the same build, so the structs are sent as they lie. Either end takes a message that is not of
 * the form below as the end of the other: neither has a reason to send one.
 */
enum ss_request_kind {
    SS_REQUEST_START,
    SS_REQUEST_START_AGAIN,
    SS_REQUEST_STOP,
    SS_REQUEST_FORGET,
    SS_REQUEST_OPEN,
    SS_REQUEST_BIND,
    SS_REQUEST_SEAL
};

/* Texts behind the environment that are there. */
#define SS_TEXT_FILE      1u
#define SS_TEXT_SEARCH    2u
#define SS_TEXT_DIRECTORY 4u

#define SS_BIND_UDP        1u
#define SS_BIND_IPV6_ONLY  2u
#define SS_BIND_REUSE_PORT 4u
#define SS_BIND_MPTCP      8u

/* The texts of a START follow it: argv, environment, and those of `given` in the order of bits. */
struct ss_helper_request {
    uint32_t kind; /* enum ss_request_kind */
    uint32_t id;
    uint32_t text_len, argc, envc, given; /* START */
    uint32_t descriptors;                 /* START, START_AGAIN: bit n: one for n comes along */
    uint32_t keep;                        /* START */
    uint32_t leaves;                      /* START */
    uint32_t index;                       /* OPEN */
    uint32_t bind;                        /* BIND: the bits below */
    struct ss_addr address;               /* BIND */
};

struct ss_helper_notice {
    uint32_t kind; /* enum ss_notice_kind */
    uint32_t id;
    int32_t error, pid, exit_code, signal;
    uint32_t ran_ms;
};

#define SS_WIRE_DESCRIPTORS_MAX 3

enum ss_wire_result {
    SS_WIRE_OK,
    SS_WIRE_NONE, /* nothing there, or no room, and one was not to wait */
    SS_WIRE_GONE  /* the other end, or its senses */
};

/* Head and text as one message with descriptors. `wait`: until there is room. */
enum ss_wire_result ss_wire_send(int fd, const void *head, size_t head_len, const void *text,
                                 size_t text_len, const int *descriptors, size_t count, bool wait);

/* Without waiting. Whatever comes along is in `descriptors`, SS_WIRE_DESCRIPTORS_MAX at most, and
 * closed on exec. */
enum ss_wire_result ss_wire_receive(int fd, void *buffer, size_t size, size_t *len,
                                    int *descriptors, size_t *count);

/* What a child is made of. */
struct ss_definition {
    struct ss_helper_request request;
    char text[]; /* request.text_len bytes */
};

/* NULL when the texts are not as many as the request says, or memory is out. */
struct ss_definition *ss_definition_new(const struct ss_helper_request *request, const char *text);
/* Wipes it. NULL is fine. */
void ss_definition_free(struct ss_definition *definition);

/*
 * In the helper: forks a child and executes it, in a group of its own. `user`: whom it becomes;
 * NULL: nobody else. Returns an errno, 0 with *pid.
 */
int ss_definition_execute(const struct ss_definition *definition, const int descriptors[3],
                          const char *user, pid_t *pid);

/*
 * Calls `visit` for each process of the system that is not a zombie. False when there is no way to
 * know them.
 */
typedef void ss_process_visit_fn(void *owner, pid_t pid, pid_t parent, pid_t group);
bool ss_process_visit(ss_process_visit_fn *visit, void *owner);

/* In the helper: descriptors, or -1 with errno. `flags`: SS_BIND_... */
int ss_helper_open_path(const char *path);
int ss_helper_bind_socket(const struct ss_addr *to, uint32_t flags);

/* The helper's life, in its process; never returns. */
_Noreturn void ss_helper_run(int fd, char *const *paths, size_t path_count, const char *user);

#endif
