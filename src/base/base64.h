/* Base64 (RFC 4648), both alphabets. */
#ifndef SS_BASE_BASE64_H
#define SS_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum ss_base64_alphabet { SS_BASE64_STANDARD, SS_BASE64_URL, SS_BASE64_EITHER };

/*
 * Decodes `text_len` characters. Padding may be there or be missing, but must be right where it is;
 * unused bits must be zero. *len is how many bytes `out` got. SS_ERR_FORMAT for anything that is
 * not base64, SS_NEED_ROOM when `cap` is too small (then *len is how many are needed).
 */
SS_CHECKED enum ss_status ss_base64_decode(uint8_t *out, size_t cap, size_t *len, const char *text,
                                           size_t text_len, enum ss_base64_alphabet alphabet);

/* Characters of the encoding of `len` bytes with padding, without the NUL. */
#define SS_BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Encodes with padding (standard) or without (URL) and ends with a NUL; `text` has room for
 * SS_BASE64_LEN(len) + 1. */
void ss_base64_encode(char *text, const uint8_t *bytes, size_t len,
                      enum ss_base64_alphabet alphabet);

#endif
