/* ss:// URLs: SIP002, and the older form that is base64 as a whole. */
#include "config/url.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "codec/method.h"
#include "config/config_internal.h"
#include "crypto/secret.h"

#define URL_MAX 8192 /* bytes; a key chain and a plugin with its options need a tenth of it */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* A copy of `len` characters with %XX resolved. NULL, or what is wrong with them. */
static const char *unescape(char **out, const char *text, size_t len)
{
    const char *wrong = NULL;
    char *copy = malloc(len + 1);
    size_t used = 0;

    if (copy == NULL)
        return "out of memory";
    for (size_t i = 0; wrong == NULL && i < len; i++) {
        if (text[i] != '%') {
            copy[used++] = text[i];
        } else if (i + 2 >= len || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) {
            wrong = "a percent sign is not followed by two hexadecimal digits";
        } else {
            copy[used++] = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            if (copy[used - 1] == '\0')
                wrong = "%00, the character that ends a text, has no place in it";
            i += 2;
        }
    }
    copy[used] = '\0';
    if (wrong == NULL) {
        *out = copy;
    } else {
        ss_wipe(copy, used);
        free(copy);
    }
    return wrong;
}

/* What a base64 text stands for, as a string without NUL; NULL when it is none. */
static char *decode(const char *text, size_t len)
{
    size_t cap = len / 4 * 3 + 3, got = 0;
    char *bytes = malloc(cap + 1);

    if (bytes == NULL)
        return NULL;
    if (ss_base64_decode((uint8_t *)bytes, cap, &got, text, len, SS_BASE64_EITHER) == SS_OK &&
        got != 0 && memchr(bytes, '\0', got) == NULL) {
        bytes[got] = '\0';
        return bytes;
    }
    ss_wipe(bytes, cap);
    free(bytes);
    return NULL;
}

/* The last `c` in `len` characters, or NULL. */
static const char *find_last(const char *text, size_t len, char c)
{
    while (len > 0) {
        if (text[--len] == c)
            return text + len;
    }
    return NULL;
}

/* "method:password", raw, split at the first colon. */
static const char *split_user(struct ss_url *url, const char *user)
{
    const char *colon = strchr(user, ':');

    if (colon == NULL || colon == user)
        return "method and password are not separated by a colon";
    url->method = malloc((size_t)(colon - user) + 1);
    url->password = ss_text_copy(colon + 1);
    if (url->method == NULL || url->password == NULL)
        return "out of memory";
    memcpy(url->method, user, (size_t)(colon - user));
    url->method[colon - user] = '\0';
    return NULL;
}

static const char *read_user(struct ss_url *url, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    const char *wrong;
    char *plain = NULL, *decoded;

    if (colon != NULL) {
        wrong = unescape(&url->method, text, (size_t)(colon - text));
        if (wrong == NULL)
            wrong = unescape(&url->password, colon + 1, len - (size_t)(colon - text) - 1);
        if (wrong != NULL)
            return wrong;
        return url->method[0] != '\0' ? NULL : "the method is missing";
    }
    wrong = unescape(&plain, text, len);
    if (wrong != NULL)
        return wrong;
    decoded = decode(plain, strlen(plain));
    ss_secret_free(plain);
    if (decoded == NULL)
        return "what stands before the @ is neither base64 nor method:password";
    wrong = split_user(url, decoded);
    ss_secret_free(decoded);
    return wrong;
}

/* Whether a name can stand in a URL: nothing in it that has a meaning there. */
static bool is_url_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr(":/?#[]@%\\\"", name[i]) != NULL)
            return false;
    return ss_host_is_valid(name, len);
}

/* host:port or [IPv6]:port; the port must be there. */
static const char *read_host(struct ss_url *url, const char *text, size_t len)
{
    const char *colon = find_last(text, len, ':');
    uint32_t port = 0;
    size_t host_len;
    char digits[6];

    if (memchr(text, '/', len) != NULL)
        return "a path stands behind the server, where it has no meaning";
    if (colon == NULL)
        return "the port is missing";
    host_len = (size_t)(colon - text);
    len -= host_len + 1;
    if (len == 0 || len >= sizeof digits)
        return "the port is not a number from 1 to 65535";
    memcpy(digits, colon + 1, len);
    digits[len] = '\0';
    if (!ss_number_parse(&port, digits, 1, UINT16_MAX))
        return "the port is not a number from 1 to 65535";

    if (host_len >= 2 && text[0] == '[' && text[host_len - 1] == ']') {
        struct ss_ip ip;

        text++;
        host_len -= 2;
        if (host_len > SS_HOST_MAX)
            return "the host is too long";
        memcpy(url->endpoint.host, text, host_len);
        url->endpoint.host[host_len] = '\0';
        if (ss_ip_parse(&ip, url->endpoint.host) != SS_OK || ip.family != SS_FAMILY_IPV6)
            return "what stands in brackets is not an IPv6 address";
    } else {
        if (!is_url_name(text, host_len))
            return "the host is missing, or not a name or an address";
        memcpy(url->endpoint.host, text, host_len);
        url->endpoint.host[host_len] = '\0';
    }
    url->endpoint.port = (uint16_t)port;
    return NULL;
}

/* `plugin=name;options` among the parameters; the others have no meaning here. */
static const char *read_query(struct ss_url *url, const char *text, size_t len)
{
    while (len != 0) {
        const char *end = memchr(text, '&', len);
        size_t part = end != NULL ? (size_t)(end - text) : len;

        if (part > 7 && strncmp(text, "plugin=", 7) == 0 && url->plugin == NULL) {
            char *value = NULL, *options;
            const char *wrong = unescape(&value, text + 7, part - 7);

            if (wrong != NULL)
                return wrong;
            options = strchr(value, ';');
            if (options != NULL)
                *options++ = '\0';
            if (value[0] == '\0') { /* no name, no plugin */
                ss_secret_free(value);
                return NULL;
            }
            if (options != NULL && *options != '\0')
                url->plugin_opts = ss_text_copy(options);
            url->plugin = value;
        }
        if (end == NULL)
            break;
        text += part + 1;
        len -= part + 1;
    }
    return NULL;
}

/* The old form: method:password@host:port, all of it in base64. */
static const char *read_legacy(struct ss_url *url, const char *text, size_t len)
{
    char *plain = decode(text, len);
    const char *at, *wrong;
    char *user;

    if (plain == NULL)
        return "it has no @, and is not base64 as a whole either";
    at = find_last(plain, strlen(plain), '@');
    if (at == NULL) {
        ss_secret_free(plain);
        return "the server is missing";
    }
    user = plain;
    wrong = read_host(url, at + 1, strlen(at + 1));
    if (wrong == NULL) {
        user[at - plain] = '\0';
        wrong = split_user(url, user);
        user[at - plain] = '@';
    }
    ss_secret_free(plain);
    return wrong;
}

const char *ss_url_parse(struct ss_url *url, const char *text)
{
    const char *at, *wrong, *query, *tag;
    size_t len, authority;

    memset(url, 0, sizeof *url);
    if (strncmp(text, "ss://", 5) != 0)
        return "it does not begin with ss://";
    text += 5;
    len = strlen(text);
    if (len > URL_MAX)
        return "it is too long";

    tag = strchr(text, '#');
    if (tag != NULL) {
        len = (size_t)(tag - text);
        wrong = unescape(&url->tag, tag + 1, strlen(tag + 1));
        if (wrong != NULL)
            return wrong;
    }
    at = find_last(text, len, '@');
    /* An @ behind a query is part of that. */
    query = memchr(text, '?', len);
    if (query != NULL && at != NULL && at > query)
        at = find_last(text, (size_t)(query - text), '@');
    if (at == NULL)
        return read_legacy(url, text, len);

    wrong = read_user(url, text, (size_t)(at - text));
    if (wrong != NULL)
        return wrong;
    len -= (size_t)(at - text) + 1;
    text = at + 1;
    query = memchr(text, '?', len);
    authority = query != NULL ? (size_t)(query - text) : len;
    if (query != NULL)
        wrong = read_query(url, query + 1, len - authority - 1);
    if (authority > 0 && text[authority - 1] == '/')
        authority--;
    return wrong != NULL ? wrong : read_host(url, text, authority);
}

void ss_url_clear(struct ss_url *url)
{
    free(url->method);
    ss_secret_free(url->password);
    free(url->plugin);
    ss_secret_free(url->plugin_opts);
    free(url->tag);
    memset(url, 0, sizeof *url);
}

struct text {
    char *ptr;
    size_t len, cap;
};

static void put(struct text *out, char c)
{
    if (out->len + 1 < out->cap)
        out->ptr[out->len++] = c;
    else
        out->cap = 0;
}

static void put_text(struct text *out, const char *text)
{
    for (; *text != '\0'; text++)
        put(out, *text);
}

static void put_escaped(struct text *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~", c) != NULL) {
            put(out, (char)c);
        } else {
            put(out, '%');
            put(out, digits[c >> 4]);
            put(out, digits[c & 15]);
        }
    }
}

/* SIP002 wants base64 for the older methods and forbids it for those of SIP022. */
static bool put_user(struct text *out, const struct ss_url *url)
{
    const struct ss_method *method = ss_method_find(url->method);
    const char *password = url->password != NULL ? url->password : ""; /* some methods have none */
    size_t method_len = strlen(url->method), password_len = strlen(password);
    size_t len = method_len + 1 + password_len;
    char *plain, *encoded;

    if (method != NULL && method->family == SS_METHODS_2022) {
        put_escaped(out, url->method);
        put(out, ':');
        put_escaped(out, password);
        return true;
    }
    plain = malloc(len);
    encoded = malloc(SS_BASE64_LEN(len) + 1);
    if (plain != NULL && encoded != NULL) {
        memcpy(plain, url->method, method_len);
        plain[method_len] = ':';
        memcpy(plain + method_len + 1, password, password_len);
        ss_base64_encode(encoded, (const uint8_t *)plain, len, SS_BASE64_URL);
        put_text(out, encoded);
    }
    if (plain != NULL)
        ss_wipe(plain, len);
    free(plain);
    ss_secret_free(encoded);
    return encoded != NULL;
}

bool ss_url_format(char *text, size_t cap, const struct ss_url *url)
{
    struct text out = {text, 0, cap};
    bool bracket = strchr(url->endpoint.host, ':') != NULL;
    char port[8];
    size_t digits = 0;

    if (!bracket && !is_url_name(url->endpoint.host, strlen(url->endpoint.host)))
        return false;
    put_text(&out, "ss://");
    if (!put_user(&out, url))
        return false;
    put(&out, '@');
    if (bracket)
        put(&out, '[');
    put_text(&out, url->endpoint.host);
    if (bracket)
        put(&out, ']');
    put(&out, ':');
    for (unsigned n = url->endpoint.port; n != 0 || digits == 0; n /= 10)
        port[digits++] = (char)('0' + n % 10);
    while (digits != 0)
        put(&out, port[--digits]);
    if (url->plugin != NULL) {
        put_text(&out, "/?plugin=");
        put_escaped(&out, url->plugin);
        if (url->plugin_opts != NULL) {
            put_text(&out, "%3B");
            put_escaped(&out, url->plugin_opts);
        }
    }
    if (url->tag != NULL && url->tag[0] != '\0') {
        put(&out, '#');
        put_escaped(&out, url->tag);
    }
    if (out.cap == 0)
        return false;
    text[out.len] = '\0';
    return true;
}
