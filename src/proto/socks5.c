/* SOCKS5 messages, as a server reads and writes them. */
#include "proto/socks5.h"

#include <string.h>

#define SOCKS_VERSION 5
#define LOGIN_VERSION 1 /* RFC 1929 */

enum ss_status ss_socks5_read_greeting(struct ss_reader *in, struct ss_socks5_greeting *greeting)
{
    struct ss_reader r = *in;
    struct ss_socks5_greeting g = {false, false};
    uint8_t version;
    uint8_t count;

    if (!ss_read_u8(&r, &version))
        return SS_NEED_INPUT;
    if (version != SOCKS_VERSION)
        return SS_ERR_FORMAT;
    if (!ss_read_u8(&r, &count))
        return SS_NEED_INPUT;
    for (; count > 0; count--) {
        uint8_t method;

        if (!ss_read_u8(&r, &method))
            return SS_NEED_INPUT;
        g.no_auth = g.no_auth || method == SS_SOCKS5_NO_AUTH;
        g.password = g.password || method == SS_SOCKS5_PASSWORD;
    }

    *in = r;
    *greeting = g;
    return SS_OK;
}

/* A length and so many bytes, left where they are: a secret is copied once and to one place only.
 */
static bool read_field(struct ss_reader *in, const uint8_t **bytes, uint8_t *len)
{
    if (!ss_read_u8(in, len))
        return false;
    *bytes = in->ptr;
    return ss_read_skip(in, *len);
}

enum ss_status ss_socks5_read_login(struct ss_reader *in, struct ss_socks5_login *login)
{
    struct ss_reader r = *in;
    const uint8_t *user_bytes, *password_bytes;
    uint8_t version, user_len, password_len;

    if (!ss_read_u8(&r, &version))
        return SS_NEED_INPUT;
    if (version != LOGIN_VERSION)
        return SS_ERR_FORMAT;
    if (!read_field(&r, &user_bytes, &user_len) || !read_field(&r, &password_bytes, &password_len))
        return SS_NEED_INPUT;
    if (memchr(user_bytes, '\0', user_len) != NULL ||
        memchr(password_bytes, '\0', password_len) != NULL)
        return SS_ERR_FORMAT;

    memcpy(login->user, user_bytes, user_len);
    login->user[user_len] = '\0';
    memcpy(login->password, password_bytes, password_len);
    login->password[password_len] = '\0';
    *in = r;
    return SS_OK;
}

enum ss_status ss_socks5_read_request(struct ss_reader *in, struct ss_socks5_request *request,
                                      enum ss_socks5_reply *refusal)
{
    struct ss_reader r = *in;
    uint8_t version;
    uint8_t command;
    enum ss_status status;

    *refusal = SS_SOCKS5_OK;
    if (!ss_read_u8(&r, &version))
        return SS_NEED_INPUT;
    if (version != SOCKS_VERSION)
        return SS_ERR_FORMAT;
    if (!ss_read_u8(&r, &command) || !ss_read_skip(&r, 1)) /* the third byte is reserved */
        return SS_NEED_INPUT;

    status = ss_target_read(&r, &request->target);
    if (status == SS_ERR_FORMAT) {
        uint8_t atyp = r.ptr[0]; /* it was there, or more input would be needed */
        bool known = atyp == SS_ATYP_IPV4 || atyp == SS_ATYP_NAME || atyp == SS_ATYP_IPV6;

        *refusal = known ? SS_SOCKS5_FAILURE : SS_SOCKS5_NO_ATYP;
    }
    if (status != SS_OK)
        return status;

    request->command = command;
    *in = r;
    return SS_OK;
}

enum ss_status ss_socks5_write_choice(struct ss_writer *out, enum ss_socks5_method method)
{
    const uint8_t choice[2] = {SOCKS_VERSION, (uint8_t)method};

    return ss_write_bytes(out, choice, sizeof choice) ? SS_OK : SS_NEED_ROOM;
}

enum ss_status ss_socks5_write_login_status(struct ss_writer *out, uint8_t status)
{
    const uint8_t answer[2] = {LOGIN_VERSION, status};

    return ss_write_bytes(out, answer, sizeof answer) ? SS_OK : SS_NEED_ROOM;
}

enum ss_status ss_socks5_write_reply(struct ss_writer *out, enum ss_socks5_reply reply,
                                     const struct ss_addr *bound)
{
    const uint8_t head[3] = {SOCKS_VERSION, (uint8_t)reply, 0};
    struct ss_writer w = *out;
    struct ss_addr addr = {0};
    struct ss_target target;
    enum ss_status status;

    if (bound != NULL)
        addr = *bound;
    ss_ip_unmap(&addr.ip); /* a client that came by IPv4 is told an IPv4 address */
    ss_target_from_addr(&target, &addr);
    if (!ss_write_bytes(&w, head, sizeof head))
        return SS_NEED_ROOM;
    status = ss_target_write(&w, &target);
    if (status == SS_OK)
        *out = w;
    return status;
}

enum ss_status ss_socks5_read_udp(struct ss_reader *in, struct ss_target *target)
{
    struct ss_reader r = *in;
    uint8_t fragment;
    enum ss_status status;

    if (!ss_read_skip(&r, 2) || !ss_read_u8(&r, &fragment))
        return SS_NEED_INPUT;
    if (fragment != 0)
        return SS_ERR_FORMAT;
    status = ss_target_read(&r, target);
    if (status == SS_OK)
        *in = r;
    return status;
}
