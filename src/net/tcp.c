/* TCP over uv_tcp_t. */
#include "net/tcp.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/sockios.h>

#include "net/socket.h"

enum ss_status ss_status_from_uv(int error)
{
    return error >= 0 ? SS_OK : ss_status_from_errno(-error);
}

enum ss_status ss_tcp_adopt(uv_loop_t *loop, uv_tcp_t *tcp, int fd)
{
    int error = uv_tcp_init(loop, tcp);

    assert(error == 0); /* without a family nothing can fail */
    error = uv_tcp_open(tcp, fd);
    if (error != 0)
        ss_socket_close(fd);
    return ss_status_from_uv(error);
}

enum ss_status ss_tcp_open_new(uv_loop_t *loop, uv_tcp_t *tcp, enum ss_family family)
{
    return ss_status_from_uv(
        uv_tcp_init_ex(loop, tcp, family == SS_FAMILY_IPV4 ? AF_INET : AF_INET6));
}

enum ss_status ss_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct ss_addr *addr,
                              uv_connect_cb done)
{
    struct sockaddr_storage storage;

    if (ss_addr_to_sockaddr(addr, &storage) == 0)
        return SS_ERR_UNSUPPORTED;
    return ss_status_from_uv(uv_tcp_connect(request, tcp, (const struct sockaddr *)&storage, done));
}

enum ss_status ss_tcp_write_now(uv_tcp_t *tcp, const struct ss_span *spans, size_t count,
                                size_t *written)
{
    uv_buf_t bufs[SS_TCP_SPANS_MAX];
    int result;

    assert(count > 0 && count <= SS_TCP_SPANS_MAX);
    for (size_t i = 0; i < count; i++)
        bufs[i] = uv_buf_init((char *)spans[i].ptr, (unsigned)spans[i].len);
    *written = 0;
    result = uv_try_write((uv_stream_t *)tcp, bufs, (unsigned)count);
    if (result >= 0) {
        *written = (size_t)result;
        return SS_OK;
    }
    /* EINPROGRESS: fast open without a cookie; the request for one is on its way, our bytes are
     * not. */
    if (result == UV_EAGAIN || result == -EINPROGRESS)
        return SS_OK;
    return ss_status_from_uv(result);
}

int ss_tcp_descriptor(const uv_tcp_t *tcp)
{
    uv_os_fd_t fd = -1;

    return uv_fileno((const uv_handle_t *)tcp, &fd) == 0 ? fd : -1;
}

void ss_tcp_shut(uv_tcp_t *tcp)
{
    /* Fails only when the connection is gone, which reading will tell. */
    (void)shutdown(ss_tcp_descriptor(tcp), SHUT_WR);
}

size_t ss_tcp_in_flight(const uv_tcp_t *tcp)
{
    int unacknowledged = 0;

    if (ioctl(ss_tcp_descriptor(tcp), SIOCOUTQ, &unacknowledged) != 0)
        unacknowledged = 0;
    return uv_stream_get_write_queue_size((const uv_stream_t *)tcp) + (size_t)unacknowledged;
}

enum ss_status ss_tcp_error(const uv_tcp_t *tcp)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(ss_tcp_descriptor(tcp), SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return SS_ERR_IO;
    return ss_status_from_errno(error);
}

bool ss_tcp_is_established(const uv_tcp_t *tcp)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;

    /* Not told before the handshake is done. */
    return getpeername(ss_tcp_descriptor(tcp), (struct sockaddr *)&peer, &len) == 0;
}

void ss_tcp_discard(uv_tcp_t *tcp)
{
    char bin[4096];
    int fd = ss_tcp_descriptor(tcp);

    /* MSG_TRUNC: the kernel drops what it would copy. */
    for (int i = 0; i < 4096; i++) {
        ssize_t got = recv(fd, bin, sizeof bin, MSG_DONTWAIT | MSG_TRUNC);

        if (got <= 0)
            break;
    }
}

void ss_tcp_close_will_reset(uv_tcp_t *tcp)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(ss_tcp_descriptor(tcp), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}
