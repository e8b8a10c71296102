/* Command lines that ss-manager starts ss-server with: every option of ss-server that it was given
 * itself is handed on. */
#ifndef SS_CONFIG_CHILD_ARGS_H
#define SS_CONFIG_CHILD_ARGS_H

#include "config/port_spec.h"

/* All give *words, to be given back with ss_child_args_free: NULL-terminated. SS_ERR_MEMORY. */

/* For the one process that serves all ports and is told of them over its standard input. */
SS_CHECKED enum ss_status ss_child_args_all(char ***words, const struct ss_config *config);

struct ss_port_files {
    const char *manager_address, *pid_path, *config_path;
};

/* For a process that serves one port, in the order in which the classic manager has them. What the
 * request decides itself is in the configuration file instead. */
SS_CHECKED enum ss_status ss_child_args_port(char ***words, const struct ss_config *config,
                                             const struct ss_port_spec *spec,
                                             const struct ss_port_files *files);

/* Wipes them. NULL is fine. */
void ss_child_args_free(char **words);

#endif
