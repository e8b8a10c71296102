/* Base64 in both alphabets, strict when it decodes. */
#include "base/base64.h"

#include <stdbool.h>

static const char standard_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The value of a digit, or -1. A digit of one alphabet alone settles *alphabet, so that no text
 * mixes both. */
static int digit_value(char c, enum ss_base64_alphabet *alphabet)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if ((c == '+' || c == '/') && *alphabet != SS_BASE64_URL) {
        *alphabet = SS_BASE64_STANDARD;
        return c == '+' ? 62 : 63;
    }
    if ((c == '-' || c == '_') && *alphabet != SS_BASE64_STANDARD) {
        *alphabet = SS_BASE64_URL;
        return c == '-' ? 62 : 63;
    }
    return -1;
}

/* Takes the padding off *text_len; false when it is not what the digits before it need. */
static bool strip_padding(const char *text, size_t *text_len)
{
    size_t digits = *text_len;

    while (digits > 0 && *text_len - digits < 2 && text[digits - 1] == '=')
        digits--;
    if (digits != *text_len && *text_len % 4 != 0)
        return false;
    *text_len = digits;
    return digits % 4 != 1; /* six bits make no byte */
}

enum ss_status ss_base64_decode(uint8_t *out, size_t cap, size_t *len, const char *text,
                                size_t text_len, enum ss_base64_alphabet alphabet)
{
    enum ss_base64_alphabet seen = alphabet;
    size_t used = 0;
    size_t need;
    uint32_t bits = 0; /* the digits so far; only the lowest `bit_count` still matter */
    unsigned bit_count = 0;

    *len = 0;
    if (!strip_padding(text, &text_len))
        return SS_ERR_FORMAT;

    /* The whole text is checked before a byte is written. */
    for (size_t i = 0; i < text_len; i++) {
        int value = digit_value(text[i], &seen);

        if (value < 0)
            return SS_ERR_FORMAT;
        bits = (uint32_t)value;
    }
    if (text_len % 4 != 0 && (bits & (text_len % 4 == 2 ? 0x0fu : 0x03u)) != 0)
        return SS_ERR_FORMAT;

    need = text_len / 4 * 3 + (text_len % 4 == 0 ? 0 : text_len % 4 - 1);
    *len = need;
    if (need > cap)
        return SS_NEED_ROOM;

    bits = 0;
    for (size_t i = 0; i < text_len; i++) {
        bits = bits << 6 | (uint32_t)digit_value(text[i], &seen);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[used++] = (uint8_t)(bits >> bit_count);
        }
    }
    return SS_OK;
}

void ss_base64_encode(char *text, const uint8_t *bytes, size_t len,
                      enum ss_base64_alphabet alphabet)
{
    const char *digits = alphabet == SS_BASE64_URL ? url_digits : standard_digits;

    while (len > 0) {
        uint32_t group = (uint32_t)bytes[0] << 16;
        size_t taken = len < 3 ? len : 3;

        if (taken > 1)
            group |= (uint32_t)bytes[1] << 8;
        if (taken > 2)
            group |= bytes[2];
        for (size_t i = 0; i <= taken; i++)
            *text++ = digits[group >> (18 - 6 * i) & 0x3f];
        if (alphabet != SS_BASE64_URL)
            for (size_t i = taken; i < 3; i++)
                *text++ = '=';
        bytes += taken;
        len -= taken;
    }
    *text = '\0';
}
