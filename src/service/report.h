/* A server's reports to the manager at --manager-address, every five seconds. */
#ifndef SS_SERVICE_REPORT_H
#define SS_SERVICE_REPORT_H

#include <stdbool.h>

#include <uv.h>

#include "service/service_internal.h"

struct ss_report;

/* Of the ports of `sockets`, which are borrowed. *out is NULL where there is nobody to tell
 * (`manager_address` is NULL). False after an error line. */
SS_CHECKED bool ss_report_start(struct ss_report **out, const char *manager_address,
                                const struct ss_sockets *sockets, uv_loop_t *loop);

/* While the loop runs; *report becomes NULL, which is fine too. */
void ss_report_stop(struct ss_report **report);

#endif
