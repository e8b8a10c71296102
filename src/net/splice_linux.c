/* splice(2) through a pipe of the thread's own. */
#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "net/socket.h"
#include "net/tcp.h"

/* What an ordinary user may ask for; a place of the pipe is a page, or a part of one. */
#define PIPE_SIZE (1024 * 1024)
/* What a pipe has by itself. The kernel gives less to users with many pipes; copying is better. */
#define PIPE_SIZE_MIN (64 * 1024)

static bool make(struct ss_splice *splice)
{
    int ends[2];
    int size;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        splice->refused = true;
        return false;
    }
    splice->read_end = ends[0];
    splice->write_end = ends[1];
    splice->made = true;
    size = fcntl(splice->write_end, F_SETPIPE_SZ, PIPE_SIZE);
    if (size < 0)
        size = fcntl(splice->write_end, F_GETPIPE_SZ);
    if (size < PIPE_SIZE_MIN) {
        ss_splice_close(splice);
        splice->refused = true;
        return false;
    }
    ss_log_debug("splice: a pipe of %d KiB", size / 1024);
    return true;
}

/* Whether an error is about the call, and not of a connection. */
static bool is_refusal(int error)
{
    return error == EINVAL || error == ENOSYS || error == EPERM || error == EOPNOTSUPP ||
           error == ENOMEM;
}

static ssize_t move(int from, int to, size_t len)
{
    ssize_t moved;

    do
        moved = splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (moved < 0 && errno == EINTR);
    return moved;
}

enum ss_status ss_splice_move(struct ss_splice *splice, const uv_tcp_t *source,
                              const uv_tcp_t *sink, size_t room, struct ss_spliced *moved)
{
    ssize_t count;

    *moved = (struct ss_spliced){0};
    if (splice->refused || (!splice->made && !make(splice)))
        return SS_ERR_UNSUPPORTED;
    count = move(ss_tcp_descriptor(source), splice->write_end, room);
    if (count < 0)
        return errno == EAGAIN     ? SS_OK
               : is_refusal(errno) ? SS_ERR_UNSUPPORTED
                                   : ss_status_from_errno(errno);
    moved->got = moved->left = (size_t)count;
    if (count == 0)
        return SS_OK;
    /* All that is in the pipe, and not more: the kernel would wait for the rest to fill a segment.
     */
    count = move(splice->read_end, ss_tcp_descriptor(sink), moved->left);
    if (count < 0)
        return is_refusal(errno) ? SS_ERR_UNSUPPORTED : SS_OK;
    moved->left -= (size_t)count;
    return SS_OK;
}

bool ss_splice_take(struct ss_splice *splice, uint8_t *bytes, size_t left)
{
    while (left != 0) {
        ssize_t count = read(splice->read_end, bytes, left);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            /* What is in it must not come out in another session. */
            ss_splice_close(splice);
            splice->refused = true;
            return false;
        }
        bytes += count;
        left -= (size_t)count;
    }
    return true;
}

void ss_splice_close(struct ss_splice *splice)
{
    if (!splice->made)
        return;
    splice->made = false;
    ss_socket_close(splice->read_end);
    ss_socket_close(splice->write_end);
}
