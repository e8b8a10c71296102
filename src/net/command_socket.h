/* The datagram socket of a manager, which is a UDP port or a local socket with a path, and what is
 * sent to one. */
#ifndef SS_NET_COMMAND_SOCKET_H
#define SS_NET_COMMAND_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "base/addr.h"
#include "base/span.h"
#include "base/status.h"

struct ss_command_address {
    struct ss_addr udp; /* family 0: a local socket */
    const char *path;
};

/* Who asked. */
struct ss_command_peer {
    struct sockaddr_storage address;
    socklen_t len;
};

struct ss_command_socket {
    int fd;   /* -1: none */
    int room; /* bytes of long answers that may wait for readers, of all together */
    /* Of the path, so that only our own is removed; numbers are given again, times are not. */
    dev_t device;
    ino_t inode;
    struct timespec made;
};

/*
 * Binds, non-blocking and closed on exec. What stands at a path is removed first, unless somebody
 * listens there: SS_ERR_IN_USE. `mode` is of a path, -1: 0777 less the umask and less what lets
 * others than the owner write. *error_text is the system's.
 */
SS_CHECKED enum ss_status ss_command_open(struct ss_command_socket *control,
                                          const struct ss_command_address *address, int mode,
                                          const char **error_text);

/* Closes it and removes the path, where it is still ours. Fine when it is not open. */
void ss_command_close(struct ss_command_socket *control, const struct ss_command_address *address);

/*
 * The next datagram, of which at most `room` bytes are kept; *len is what it had. SS_NEED_INPUT
 * when none waits.
 */
SS_CHECKED enum ss_status ss_command_receive(const struct ss_command_socket *control, char *bytes,
                                             size_t room, size_t *len,
                                             struct ss_command_peer *peer);

/* Whether an answer can reach it: a local socket without a path can't be named. */
bool ss_command_peer_is_named(const struct ss_command_peer *peer);

/*
 * SS_NEED_ROOM when the peer has not read what was sent before; other errors with *error_text. What
 * peers have not read takes the room of the socket, so long answers leave some of it for others.
 */
SS_CHECKED enum ss_status ss_command_answer(const struct ss_command_socket *control,
                                            const struct ss_command_peer *peer,
                                            struct ss_view datagram, const char **error_text);

/* One datagram to a manager, from a socket of the moment. Never waits. */
SS_CHECKED enum ss_status ss_command_report(const struct ss_command_address *to,
                                            struct ss_view datagram, const char **error_text);

#endif
