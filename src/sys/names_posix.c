/* Looking names up through getaddrinfo. */
#include "sys/names.h"

#include <string.h>
#include <strings.h>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

static bool take(struct ss_ip *ip, const struct addrinfo *info)
{
    memset(ip, 0, sizeof *ip);
    if (info->ai_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, info->ai_addr, sizeof in);
        ip->family = SS_FAMILY_IPV4;
        memcpy(ip->bytes, &in.sin_addr, 4);
        return true;
    }
    if (info->ai_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, info->ai_addr, sizeof in6);
        ip->family = SS_FAMILY_IPV6;
        memcpy(ip->bytes, &in6.sin6_addr, 16);
        ip->scope = in6.sin6_scope_id;
        return true;
    }
    return false;
}

enum ss_status ss_names_first(struct ss_ip *ip, const char *host, const char **error_text)
{
    static const struct ss_ip loopback = {.family = SS_FAMILY_IPV4, .bytes = {127, 0, 0, 1}};
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    enum ss_status status = SS_ERR_NOT_FOUND;
    int error;

    *error_text = "no address";
    if (ss_ip_parse(ip, host) == SS_OK)
        return SS_OK;
    if (strcasecmp(host, "localhost") == 0) {
        *ip = loopback;
        return SS_OK;
    }
    error = getaddrinfo(host, NULL, &hints, &found);
    if (error != 0) {
        *error_text = gai_strerror(error);
        return SS_ERR_NOT_FOUND;
    }
    for (const struct addrinfo *info = found; info != NULL && status != SS_OK;
         info = info->ai_next) {
        if (take(ip, info))
            status = SS_OK;
    }
    freeaddrinfo(found);
    return status;
}
