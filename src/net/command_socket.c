/* Datagram sockets of managers. */
#include "net/command_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/sockios.h>
#endif

#include "net/socket.h"

#define SEND_ROOM  (4 << 20)
#define SHORT_SIZE 4096 /* bytes of an answer that is always tried */

static int make(int family)
{
    int fd = socket(family, SOCK_DGRAM, 0);

    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool to_sockaddr(const struct ss_command_address *address, struct sockaddr_storage *out,
                        socklen_t *len)
{
    struct sockaddr_un *un = (struct sockaddr_un *)out;

    if (address->udp.ip.family != SS_FAMILY_NONE) {
        *len = ss_addr_to_sockaddr(&address->udp, out);
        return true;
    }
    memset(out, 0, sizeof *out);
    if (strlen(address->path) >= sizeof un->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    un->sun_family = AF_UNIX;
    strcpy(un->sun_path, address->path);
    *len = sizeof *un;
    return true;
}

/* Whether a process has a socket bound there. */
static bool is_alive(const struct sockaddr_storage *at, socklen_t len)
{
    int fd = make(AF_UNIX);
    bool alive;

    if (fd < 0)
        return false;
    alive = connect(fd, (const struct sockaddr *)at, len) == 0 || errno == EACCES ||
            errno == EPERM || errno == EPROTOTYPE;
    close(fd);
    return alive;
}

static bool bind_path(struct ss_command_socket *control, const char *path,
                      const struct sockaddr_storage *at, socklen_t len, int mode)
{
    mode_t before = umask(0);
    struct stat about;
    bool bound;

    umask(mode >= 0 ? ~(mode_t)mode & 0777 : before | 022);
    bound = bind(control->fd, (const struct sockaddr *)at, len) == 0;
    umask(before);
    if (bound && stat(path, &about) == 0) {
        control->device = about.st_dev;
        control->inode = about.st_ino;
        control->made = about.st_mtim;
    }
    return bound;
}

/* As much room as the system gives. */
static int widen(int fd)
{
    int size = SEND_ROOM;
    socklen_t len = sizeof size;

#ifdef SO_SNDBUFFORCE
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, len) != 0)
#endif
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, len);
    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len) == 0 ? size / 2 : 0;
}

enum ss_status ss_command_open(struct ss_command_socket *control,
                               const struct ss_command_address *address, int mode,
                               const char **error_text)
{
    bool local = address->udp.ip.family == SS_FAMILY_NONE;
    struct sockaddr_storage at;
    socklen_t len;
    int error;

    memset(control, 0, sizeof *control);
    control->fd = -1;
    if (!to_sockaddr(address, &at, &len))
        goto failed;
    control->fd = make(at.ss_family);
    if (control->fd < 0)
        goto failed;
    if (local && access(address->path, F_OK) == 0) {
        if (is_alive(&at, len)) {
            errno = EADDRINUSE;
            goto failed;
        }
        if (unlink(address->path) != 0)
            goto failed;
    }
    if (local ? bind_path(control, address->path, &at, len, mode)
              : bind(control->fd, (const struct sockaddr *)&at, len) == 0) {
        control->room = widen(control->fd);
        return SS_OK;
    }
failed:
    error = errno;
    *error_text = strerror(error);
    if (control->fd >= 0)
        close(control->fd);
    control->fd = -1;
    return ss_status_from_errno(error);
}

void ss_command_close(struct ss_command_socket *control, const struct ss_command_address *address)
{
    struct stat about;

    if (control->fd < 0)
        return;
    if (address->udp.ip.family == SS_FAMILY_NONE && stat(address->path, &about) == 0 &&
        about.st_dev == control->device && about.st_ino == control->inode &&
        about.st_mtim.tv_sec == control->made.tv_sec &&
        about.st_mtim.tv_nsec == control->made.tv_nsec)
        (void)unlink(address->path); /* a folder that is not ours any more keeps it */
    close(control->fd);
    control->fd = -1;
}

enum ss_status ss_command_receive(const struct ss_command_socket *control, char *bytes, size_t room,
                                  size_t *len, struct ss_command_peer *peer)
{
    struct iovec where = {.iov_base = bytes, .iov_len = room};
    struct msghdr message = {.msg_name = &peer->address,
                             .msg_namelen = sizeof peer->address,
                             .msg_iov = &where,
                             .msg_iovlen = 1};
    ssize_t got;

    do
        got = recvmsg(control->fd, &message, MSG_TRUNC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return ss_status_from_errno(errno);
    peer->len = message.msg_namelen;
    *len = (size_t)got;
    /* Where the system does not tell how long it was, it tells that it was longer. */
    if ((message.msg_flags & MSG_TRUNC) != 0 && *len <= room)
        *len = room + 1;
    return SS_OK;
}

bool ss_command_peer_is_named(const struct ss_command_peer *peer)
{
    return peer->len > offsetof(struct sockaddr_un, sun_path);
}

static enum ss_status send_to(int fd, struct ss_view datagram, const struct sockaddr_storage *at,
                              socklen_t len, const char **error_text)
{
    ssize_t sent;

    do
        sent = sendto(fd, datagram.ptr, datagram.len, 0, (const struct sockaddr *)at, len);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return SS_OK;
    *error_text = strerror(errno);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        return SS_NEED_ROOM;
    return ss_status_from_errno(errno);
}

enum ss_status ss_command_answer(const struct ss_command_socket *control,
                                 const struct ss_command_peer *peer, struct ss_view datagram,
                                 const char **error_text)
{
#ifdef SIOCOUTQ
    int waiting = 0;

    if (datagram.len > SHORT_SIZE && ioctl(control->fd, SIOCOUTQ, &waiting) == 0 &&
        waiting > control->room) {
        *error_text = "others have not read what they asked for";
        return SS_NEED_ROOM;
    }
#endif
    return send_to(control->fd, datagram, &peer->address, peer->len, error_text);
}

enum ss_status ss_command_report(const struct ss_command_address *to, struct ss_view datagram,
                                 const char **error_text)
{
    struct sockaddr_storage at;
    enum ss_status status;
    socklen_t len;
    int fd;

    if (!to_sockaddr(to, &at, &len) || (fd = make(at.ss_family)) < 0) {
        *error_text = strerror(errno);
        return ss_status_from_errno(errno);
    }
    status = send_to(fd, datagram, &at, len, error_text);
    close(fd);
    return status;
}
