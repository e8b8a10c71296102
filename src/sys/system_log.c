/* Log lines to syslog. */
#include "sys/system_log.h"

#include <syslog.h>

#include "base/log.h"

static void to_syslog(enum ss_log_level level, const char *text)
{
    static const int priorities[] = {
        [SS_LOG_ERROR] = LOG_ERR,
        [SS_LOG_WARN] = LOG_WARNING,
        [SS_LOG_INFO] = LOG_INFO,
        [SS_LOG_DEBUG] = LOG_DEBUG,
    };

    syslog(priorities[level], "%s", text);
}

void ss_syslog_start(const char *ident)
{
    /* No LOG_CONS: without a log daemon each line would go to the console, which may block a loop,
     * and by way of an allocation. */
    openlog(ident, LOG_PID, LOG_DAEMON);
    ss_log_set_sink(to_syslog);
}
