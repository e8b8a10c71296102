/*
 * Reloading: what the program was started with is read again, and what is served changes to it, or
 * stays as it is. Files are read and names looked up in a thread of its own, so that no loop waits
 * for them; the change is made on loop 0, between two events. For this folder.
 */
#ifndef SS_SERVICE_RELOAD_H
#define SS_SERVICE_RELOAD_H

#include <uv.h>

#include "service/generation.h"
#include "service/helped.h"
#include "service/ports.h"

/* The words of a command line, secrets and all, as they were before they were read. */
struct ss_words {
    int count;
    char **list; /* NULL-terminated */
};

/* SS_ERR_MEMORY. */
SS_CHECKED enum ss_status ss_words_keep(struct ss_words *words, int argc, char *const *argv);
/* Wipes them. Fine on a zeroed struct. */
void ss_words_forget(struct ss_words *words);

struct ss_reload;

struct ss_reload_options {
    struct ss_words *words; /* borrowed */
    /* What is in force; changed by a reload. */
    struct ss_service **service;
    struct ss_sockets *sockets;
    struct ss_ports *ports;   /* NULL: there is no manager */
    struct ss_helped *helped; /* opens files that this process may not */
    uv_loop_t *loop;
};

/* SS_ERR_MEMORY, SS_ERR_LIMIT. */
SS_CHECKED enum ss_status ss_reload_new(struct ss_reload **out,
                                        const struct ss_reload_options *options);

/* Begins one; while one is under way another follows it, however often this is called. */
void ss_reload_begin(struct ss_reload *reload);

/* What is under way is given up, once its thread has ended. The loop must run once more, and frees
 * it. NULL is fine. */
void ss_reload_close(struct ss_reload *reload);

#endif
