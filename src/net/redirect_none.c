/* A system that redirects nothing to us, as far as this program knows. */
#include "net/redirect.h"

#include "net/socket.h"

enum ss_status ss_redirect_make_transparent(int fd, enum ss_family family)
{
    (void)fd;
    (void)family;
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_redirect_may_be_transparent(void)
{
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_redirect_want_originals(int fd, enum ss_family family, bool both)
{
    (void)fd;
    (void)family;
    (void)both;
    return SS_ERR_UNSUPPORTED;
}

bool ss_redirect_carries_original(int level, int type)
{
    (void)level;
    (void)type;
    return false;
}

void ss_redirect_original(int fd, struct ss_addr *original)
{
    ss_socket_local(fd, original);
}

bool ss_redirect_is_local(const struct ss_ip *ip)
{
    (void)ip;
    return false;
}
