/* Processes by their number. */
#include "sys/other_process.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

static bool lives(int32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

bool ss_other_process_is(int32_t pid, const char *word)
{
    char path[64], line[32768];
    ssize_t len;
    int fd;

    if (pid <= 1 || !lives(pid))
        return false;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return access("/proc/self/cmdline", F_OK) != 0;
    len = read(fd, line, sizeof line - 1);
    close(fd);
    if (len <= 0) /* it has ended, and only waits to be reaped */
        return false;
    line[len] = '\0';
    for (const char *at = line; at < line + len; at += strlen(at) + 1)
        if (strcmp(at, word) == 0)
            return true;
    return false;
}

void ss_other_process_end(int32_t pid, bool at_once)
{
    if (pid > 1)
        kill((pid_t)pid, at_once ? SIGKILL : SIGTERM);
}

int32_t ss_other_process_pid(const char *pid_path)
{
    char text[16], *end;
    long pid;
    ssize_t len;
    int fd = open(pid_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return 0;
    len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    pid = strtol(text, &end, 10);
    return end != text && (*end == '\0' || *end == '\n') && pid > 1 && pid < INT32_MAX
               ? (int32_t)pid
               : 0;
}

bool ss_home_folder(char *path, unsigned size)
{
    const struct passwd *user = getpwuid(getuid());

    if (user == NULL || user->pw_dir[0] == '\0' || strstr(user->pw_dir, "nologin") != NULL ||
        strstr(user->pw_dir, "nonexistent") != NULL)
        return false;
    return (unsigned)snprintf(path, size, "%s", user->pw_dir) < size;
}
