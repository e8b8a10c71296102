/* The system's log as the place where log lines go. */
#ifndef SS_SYS_SYSTEM_LOG_H
#define SS_SYS_SYSTEM_LOG_H

/* From here on lines go there, marked with `ident`, which must stay valid, and the process id. */
void ss_syslog_start(const char *ident);

#endif
