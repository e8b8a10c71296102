/* Limits and the user of a process. */
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sched.h>
#endif
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "sys/rights.h"

/* The third field is of file pages and shared memory: what is left is the process's own. */
uint64_t ss_process_private_bytes(void)
{
    static int statm = -1;
    unsigned long size, resident, shared;
    char text[128];
    ssize_t len;

    if (statm < 0)
        statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    len = statm < 0 ? -1 : pread(statm, text, sizeof text - 1, 0);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    if (sscanf(text, "%lu %lu %lu", &size, &resident, &shared) != 3 || shared > resident)
        return 0;
    return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

unsigned ss_process_cpu_count(void)
{
    long online;
#ifdef CPU_COUNT
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
        return (unsigned)CPU_COUNT(&allowed);
#endif
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

static uint32_t clip(rlim_t limit)
{
    return limit == RLIM_INFINITY || limit > INT32_MAX ? INT32_MAX : (uint32_t)limit;
}

enum ss_status ss_process_raise_descriptors(uint32_t wanted, uint32_t *limit)
{
    struct rlimit now, next;
    enum ss_status status = SS_OK;

    *limit = 1024;
    if (getrlimit(RLIMIT_NOFILE, &now) != 0)
        return SS_ERR_IO;
    next = now;
    next.rlim_cur = now.rlim_max;
    if (wanted != 0)
        next.rlim_cur = next.rlim_max = wanted;

    if (setrlimit(RLIMIT_NOFILE, &next) == 0)
        now = next;
    else if (wanted != 0)
        status = SS_ERR_PERMISSION;
    *limit = clip(now.rlim_cur);
    return status;
}

/* A user by name, or by the number of one that exists. */
static const struct passwd *find_user(const char *user)
{
    const struct passwd *found = getpwnam(user);
    char *end;
    unsigned long number;

    if (found != NULL || user[0] < '0' || user[0] > '9')
        return found;
    errno = 0;
    number = strtoul(user, &end, 10);
    if (errno != 0 || *end != '\0' || number > UINT32_MAX)
        return NULL;
    return getpwuid((uid_t)number);
}

enum ss_status ss_process_switch_user(const char *user, unsigned rights, const char **error_text)
{
    const struct passwd *found = find_user(user);

    *error_text = NULL;
    if (found == NULL)
        return SS_ERR_NOT_FOUND;
    /* A server that its manager has started as this user has no right to change the groups, and no
     * need to. */
    if (found->pw_uid != 0 && getuid() == found->pw_uid && geteuid() == found->pw_uid &&
        getgid() == found->pw_gid && getegid() == found->pw_gid)
        return SS_OK;
    /* Whoever stays root keeps all of them. */
    if (found->pw_uid == 0)
        rights = 0;
    if (rights != 0 && ss_rights_hold() != SS_OK)
        rights = 0;
    /* The groups go first: afterwards there is no right to change them. */
    if (setgid(found->pw_gid) != 0 || initgroups(found->pw_name, found->pw_gid) != 0 ||
        setuid(found->pw_uid) != 0) {
        *error_text = strerror(errno);
        return errno == EPERM ? SS_ERR_PERMISSION : SS_ERR_IO;
    }
    if (rights != 0 && ss_rights_reduce(rights) != SS_OK) {
        *error_text = "the rights that are not needed could not be given up";
        return SS_ERR_IO;
    }
    /* Were there a way back, the switch would have been for nothing. */
    if (found->pw_uid != 0 && setuid(0) == 0) {
        *error_text = "the old user could be taken back";
        return SS_ERR_IO;
    }
    return SS_OK;
}

bool ss_process_has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

bool ss_process_is_root(void)
{
    return geteuid() == 0;
}

/* The service manager says which stream it reads, by device and inode. */
bool ss_process_logs_to_journal(void)
{
    const char *said = getenv("JOURNAL_STREAM");
    char real[64];
    struct stat about;

    if (said == NULL || fstat(STDERR_FILENO, &about) != 0)
        return false;
    snprintf(real, sizeof real, "%ju:%ju", (uintmax_t)about.st_dev, (uintmax_t)about.st_ino);
    return strcmp(real, said) == 0;
}

void ss_process_fill_streams(void)
{
    int fd;

    /* The lowest number that is free is taken each time. */
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

void ss_process_ignore_pipes(void)
{
    signal(SIGPIPE, SIG_IGN);
}
