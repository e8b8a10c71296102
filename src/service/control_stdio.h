/* ss-server's side of the conversation with ss-manager, over standard input and output. */
#ifndef SS_SERVICE_CONTROL_STDIO_H
#define SS_SERVICE_CONTROL_STDIO_H

#include <stdbool.h>

#include <uv.h>

#include "base/status.h"
#include "service/ports.h"

struct ss_control_stdio;

/*
 * Greets the manager, which gives a program one second for it, and takes standard input and output
 * for this conversation alone: log lines go to standard error from here on, those of plugins too.
 * SS_ERR_IO, SS_ERR_MEMORY.
 */
SS_CHECKED enum ss_status ss_control_stdio_new(struct ss_control_stdio **out);

/* Takes requests, for the thread of loop 0. `gone` is called once when the manager is gone, and
 * with it whoever the ports are for. SS_ERR_IO. */
SS_CHECKED enum ss_status ss_control_stdio_start(struct ss_control_stdio *control, uv_loop_t *loop,
                                                 struct ss_ports *ports, void (*gone)(void *owner),
                                                 void *owner);

/* No request is taken any more. The loop must run once more. NULL is fine. */
void ss_control_stdio_close(struct ss_control_stdio *control);

/* After the loop. NULL is fine. */
void ss_control_stdio_free(struct ss_control_stdio *control);

#endif
