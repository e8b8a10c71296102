/* The table of a hosts file follows the file. */
#include "resolver/hosts_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

void ss_hosts_file_init(struct ss_hosts_file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    ss_watched_file_init(&file->file, path, SS_HOSTS_TEXT_MAX);
}

void ss_hosts_file_clear(struct ss_hosts_file *file)
{
    ss_hosts_clear(&file->hosts);
}

void ss_hosts_file_check(struct ss_hosts_file *file, uint64_t now_ms)
{
    enum ss_status status;
    size_t len;
    char *text;

    switch (ss_watched_file_look(&file->file, now_ms, &text, &len, &status)) {
    case SS_FILE_READ:
        status = ss_hosts_parse(&file->hosts, text, len);
        free(text);
        break;
    case SS_FILE_GONE:
        ss_hosts_clear(&file->hosts);
        break;
    case SS_FILE_SAME:
    case SS_FILE_UNREADABLE:
        break;
    }
    if (status != SS_OK)
        ss_log_warn("hosts file %s: %s; its names as known before are kept", file->file.path,
                    ss_status_text(status));
}
