/*
 * Cursors over wire bytes. Every read and write is bounds-checked and moves the cursor only when it
 * succeeds; integers are put together byte by byte, so alignment and byte order of the machine do
 * not matter.
 */
#ifndef SS_BASE_BYTES_H
#define SS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes still to be read. */
struct ss_reader {
    const uint8_t *ptr;
    size_t len;
};

/* Room still to be written. */
struct ss_writer {
    uint8_t *ptr;
    size_t len;
};

static inline bool ss_read_bytes(struct ss_reader *in, void *out, size_t len)
{
    if (in->len < len)
        return false;
    if (len == 0) /* the cursor, or `out`, may be NULL then */
        return true;
    memcpy(out, in->ptr, len);
    in->ptr += len;
    in->len -= len;
    return true;
}

static inline bool ss_read_skip(struct ss_reader *in, size_t len)
{
    if (in->len < len)
        return false;
    if (len == 0)
        return true;
    in->ptr += len;
    in->len -= len;
    return true;
}

static inline bool ss_read_u8(struct ss_reader *in, uint8_t *value)
{
    return ss_read_bytes(in, value, 1);
}

static inline bool ss_read_u16be(struct ss_reader *in, uint16_t *value)
{
    uint8_t b[2];

    if (!ss_read_bytes(in, b, sizeof b))
        return false;
    *value = (uint16_t)(b[0] << 8 | b[1]);
    return true;
}

static inline bool ss_read_u64be(struct ss_reader *in, uint64_t *value)
{
    uint8_t b[8];

    if (!ss_read_bytes(in, b, sizeof b))
        return false;
    *value = 0;
    for (int i = 0; i < 8; i++)
        *value = *value << 8 | b[i];
    return true;
}

static inline bool ss_write_bytes(struct ss_writer *out, const void *bytes, size_t len)
{
    if (out->len < len)
        return false;
    if (len == 0)
        return true;
    memcpy(out->ptr, bytes, len);
    out->ptr += len;
    out->len -= len;
    return true;
}

static inline bool ss_write_u8(struct ss_writer *out, uint8_t value)
{
    return ss_write_bytes(out, &value, 1);
}

static inline bool ss_write_u16be(struct ss_writer *out, uint16_t value)
{
    const uint8_t b[2] = {(uint8_t)(value >> 8), (uint8_t)value};

    return ss_write_bytes(out, b, sizeof b);
}

static inline bool ss_write_u64be(struct ss_writer *out, uint64_t value)
{
    uint8_t b[8];

    for (int i = 7; i >= 0; i--) {
        b[i] = (uint8_t)value;
        value >>= 8;
    }
    return ss_write_bytes(out, b, sizeof b);
}

/* Loads and stores at places whose bounds are known. */
static inline uint16_t ss_load_u16be(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline void ss_store_u16be(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline uint64_t ss_load_u64le(const uint8_t *p)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

static inline void ss_store_u64le(uint8_t *p, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        p[i] = (uint8_t)value;
        value >>= 8;
    }
}

#endif
