/* ss-manager: ports and users that come and go while servers run, on command. */
#ifndef SS_SERVICE_MANAGER_H
#define SS_SERVICE_MANAGER_H

#include <stdbool.h>

#include "config/config.h"

struct ss_words;

/* Serves until a signal. `words` are of the command line, for reloads. The exit code. */
int ss_manager_run(struct ss_config *config, const char *ident, struct ss_words *words);

/* Whether the ports of the configuration can be served, as far as no system is asked. False after
 * the error lines. */
bool ss_manager_check(const struct ss_config *config);

#endif
