/* Preloaded into a program: accept fails with ENFILE while the file of SS_ACCEPT_FAULT_FILE is
 * there. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool faulty(void)
{
    const char *path = getenv("SS_ACCEPT_FAULT_FILE");

    return path != NULL && access(path, F_OK) == 0;
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    if (faulty()) {
        errno = ENFILE;
        return -1;
    }
    return (int)syscall(SYS_accept4, fd, address, len, flags);
}

int accept(int fd, struct sockaddr *address, socklen_t *len)
{
    return accept4(fd, address, len, 0);
}
