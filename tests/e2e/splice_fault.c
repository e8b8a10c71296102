/* Preloaded into a program: splice is refused as SS_SPLICE_FAULT says, "source" out of sockets,
 * "sink" into them; or, "pipe", no pipe is made for it larger than a page. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool wanted(const char *what)
{
    const char *fault = getenv("SS_SPLICE_FAULT");

    return fault != NULL && strcmp(fault, what) == 0;
}

static bool is_socket(int fd)
{
    int kind;
    socklen_t len = sizeof kind;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &len) == 0;
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t len, unsigned flags)
{
    if (wanted(is_socket(from) ? "source" : "sink")) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_splice, from, from_at, to, to_at, len, flags);
}

int fcntl(int fd, int command, ...)
{
    va_list arguments;
    void *argument;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_SETPIPE_SZ && wanted("pipe"))
        argument = (void *)4096;
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
