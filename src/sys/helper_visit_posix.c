/* Looking at the system's processes, for those that have left their group or lost their parent. */
#include "sys/helper_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

/* What is mounted there may be of another process namespace, whose numbers mean nothing here. */
static bool is_ours(void)
{
    char text[24];
    ssize_t len = readlink("/proc/self", text, sizeof text - 1);

    if (len <= 0)
        return false;
    text[len] = '\0';
    return strtol(text, NULL, 10) == (long)getpid();
}

/* "PID (name) STATE PARENT GROUP ...", where the name may hold anything. */
static bool read_one(const char *name, pid_t *parent, pid_t *group)
{
    char path[64], text[512], state;
    const char *behind;
    long numbers[2];
    ssize_t len;
    int fd;

    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';
    behind = strrchr(text, ')');
    if (behind == NULL ||
        sscanf(behind + 1, " %c %ld %ld", &state, &numbers[0], &numbers[1]) != 3 || state == 'Z' ||
        state == 'X')
        return false;
    *parent = (pid_t)numbers[0];
    *group = (pid_t)numbers[1];
    return true;
}

bool ss_process_visit(ss_process_visit_fn *visit, void *owner)
{
    DIR *folder = is_ours() ? opendir("/proc") : NULL;
    const struct dirent *entry;

    if (folder == NULL)
        return false;
    while ((entry = readdir(folder)) != NULL) {
        pid_t parent, group;

        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_one(entry->d_name, &parent, &group))
            visit(owner, (pid_t)strtol(entry->d_name, NULL, 10), parent, group);
    }
    closedir(folder);
    return true;
}
