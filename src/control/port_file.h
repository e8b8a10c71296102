/* The configuration file of a server that serves one port, as the classic manager writes it. */
#ifndef SS_CONTROL_PORT_FILE_H
#define SS_CONTROL_PORT_FILE_H

#include "config/port_spec.h"

/* Strict JSON, with a line end; NULL when memory is out. To be wiped and freed by the caller. */
char *ss_port_file_text(const struct ss_port_spec *spec, const struct ss_config *config);

#endif
