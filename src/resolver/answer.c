/* Reads DNS messages: names with their compression, records, aliases, and the time to live. */
#include "resolver/answer.h"

#include <string.h>

#include "base/bytes.h"

#define NAME_MAX_LEN 255 /* on the wire, RFC 1035 2.3.4 */
#define HEADER_LEN   12
#define SOA_NUMBERS  16 /* serial, refresh, retry, expire: what stands before the minimum */

/* Bounds for hostile messages; real ones stay far below. */
#define POINTERS_MAX 64
#define RECORDS_MAX  256
#define ALIASES_MAX  16

/* How long a "no" is kept, and failures, about which nobody says a time. */
#define NEGATIVE_MIN_S     1
#define NEGATIVE_MAX_S     60
#define NEGATIVE_DEFAULT_S 2
#define FAILED_S           2
#define SILENT_S           1

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_SOA = 6, TYPE_AAAA = 28 };
enum { CLASS_IN = 1 };
enum { RCODE_NONE = 0, RCODE_NO_SUCH_NAME = 3 };

/* A name as labels with their lengths, lower case, with the root's zero: so equal names are equal
 * bytes, and a dot inside a label is no separator. */
struct wire_name {
    size_t len;
    uint8_t bytes[NAME_MAX_LEN];
};

struct record {
    struct wire_name owner;
    uint16_t type, class;
    uint32_t ttl_s;
    size_t data_at;
    uint16_t data_len;
};

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static struct ss_reader reader_at(struct ss_view message, size_t at)
{
    return (struct ss_reader){message.ptr + at, message.len - at};
}

static bool read_u32(struct ss_reader *in, uint32_t *value)
{
    uint16_t high, low;

    if (!ss_read_u16be(in, &high) || !ss_read_u16be(in, &low))
        return false;
    *value = (uint32_t)high << 16 | low;
    return true;
}

/* Reads the name at *at and moves *at behind it. A pointer may only lead back to before the piece
 * that holds it, so that no circle exists. */
static bool read_name(struct ss_view message, size_t *at, struct wire_name *name)
{
    size_t here = *at, piece = *at;
    unsigned pointers = 0;

    name->len = 0;
    while (here < message.len) {
        const uint8_t len = message.ptr[here];

        if (len >= 0xc0) {
            size_t to;

            if (message.len - here < 2 || ++pointers > POINTERS_MAX)
                return false;
            to = (size_t)(len & 0x3f) << 8 | message.ptr[here + 1];
            if (to >= piece)
                return false;
            if (pointers == 1)
                *at = here + 2;
            here = piece = to;
            continue;
        }
        if (len > 63 || message.len - here <= len || NAME_MAX_LEN - name->len <= len)
            return false;
        name->bytes[name->len++] = len;
        for (size_t i = 1; i <= len; i++)
            name->bytes[name->len++] = lower(message.ptr[here + i]);
        here += (size_t)len + 1;
        if (len == 0) {
            if (pointers == 0)
                *at = here;
            return true;
        }
    }
    return false;
}

static bool name_from_text(struct wire_name *name, const char *text)
{
    name->len = 0;
    while (*text != '\0') {
        const size_t len = strcspn(text, ".");

        if (len == 0 || len > 63 || name->len + len + 2 > NAME_MAX_LEN)
            return false;
        name->bytes[name->len++] = (uint8_t)len;
        for (size_t i = 0; i < len; i++)
            name->bytes[name->len++] = lower((uint8_t)text[i]);
        text += len + (text[len] == '.');
    }
    name->bytes[name->len++] = 0;
    return true;
}

static bool same_name(const struct wire_name *a, const struct wire_name *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Whether `name` is `zone` or lies in it. */
static bool is_within(const struct wire_name *name, const struct wire_name *zone)
{
    size_t at = 0;

    while (name->len - at > zone->len)
        at += (size_t)name->bytes[at] + 1;
    return name->len - at == zone->len && memcmp(name->bytes + at, zone->bytes, zone->len) == 0;
}

/* RFC 2181, 8: a time to live with its highest bit set is taken as zero. */
static uint32_t ttl_of(uint32_t value)
{
    return value <= INT32_MAX ? value : 0;
}

/* Reads the record at *at and moves *at behind it. */
static bool read_record(struct ss_view message, size_t *at, struct record *record)
{
    struct ss_reader in;

    if (!read_name(message, at, &record->owner))
        return false;
    in = reader_at(message, *at);
    if (!ss_read_u16be(&in, &record->type) || !ss_read_u16be(&in, &record->class) ||
        !read_u32(&in, &record->ttl_s) || !ss_read_u16be(&in, &record->data_len))
        return false;
    record->ttl_s = ttl_of(record->ttl_s);
    record->data_at = message.len - in.len;
    if (!ss_read_skip(&in, record->data_len))
        return false;
    *at = message.len - in.len;
    return true;
}

static void limit_ttl(struct ss_answer *answer, uint32_t ttl_s)
{
    if (!answer->has_ttl || ttl_s < answer->ttl_s)
        answer->ttl_s = ttl_s;
    answer->has_ttl = true;
}

/* Goes from *name along the aliases to the name that has the addresses. Servers list aliases in
 * their order, so that one round is enough; others cost a round for each. */
static bool follow_aliases(struct ss_answer *answer, struct ss_view message, size_t answers_at,
                           uint16_t count, struct wire_name *name)
{
    unsigned aliases = 0, before;

    do {
        size_t at = answers_at;

        before = aliases;
        for (uint16_t i = 0; i < count; i++) {
            struct record record;
            size_t data_at;

            if (!read_record(message, &at, &record))
                return false;
            if (record.type != TYPE_CNAME || record.class != CLASS_IN ||
                !same_name(&record.owner, name))
                continue;
            data_at = record.data_at;
            if (++aliases > ALIASES_MAX || !read_name(message, &data_at, name) ||
                data_at != record.data_at + record.data_len)
                return false;
            limit_ttl(answer, record.ttl_s);
        }
    } while (aliases != before);
    return true;
}

static bool collect_addresses(struct ss_answer *answer, struct ss_view message, size_t *at,
                              uint16_t count, const struct wire_name *name, enum ss_family family)
{
    const uint16_t type = family == SS_FAMILY_IPV4 ? TYPE_A : TYPE_AAAA;
    const size_t len = family == SS_FAMILY_IPV4 ? 4 : 16;

    for (uint16_t i = 0; i < count; i++) {
        struct record record;

        if (!read_record(message, at, &record))
            return false;
        if (record.type != type || record.class != CLASS_IN || !same_name(&record.owner, name))
            continue;
        if (record.data_len != len)
            return false;
        limit_ttl(answer, record.ttl_s);
        if (answer->count == SS_ADDRESSES_MAX)
            continue;
        answer->ips[answer->count] = (struct ss_ip){.family = (uint8_t)family};
        memcpy(answer->ips[answer->count].bytes, message.ptr + record.data_at, len);
        answer->count++;
    }
    return true;
}

/* RFC 2308, 5: a "no" holds as long as the zone's SOA and its last field say, the lesser of them.
 * A section that can't be read says nothing. */
static void read_negative_ttl(struct ss_answer *answer, struct ss_view message, size_t at,
                              uint16_t count, const struct wire_name *name)
{
    for (uint16_t i = 0; i < count; i++) {
        struct record record;
        struct wire_name ignored;
        struct ss_view data;
        struct ss_reader in;
        uint32_t minimum_s;
        size_t data_at;

        if (!read_record(message, &at, &record))
            return;
        if (record.type != TYPE_SOA || record.class != CLASS_IN || !is_within(name, &record.owner))
            continue;
        data = (struct ss_view){message.ptr, record.data_at + record.data_len};
        data_at = record.data_at;
        if (!read_name(data, &data_at, &ignored) || !read_name(data, &data_at, &ignored))
            return;
        in = reader_at(data, data_at);
        if (!ss_read_skip(&in, SOA_NUMBERS) || !read_u32(&in, &minimum_s))
            return;
        minimum_s = ttl_of(minimum_s);
        limit_ttl(answer, record.ttl_s < minimum_s ? record.ttl_s : minimum_s);
        return;
    }
}

/* Reads header and question. False when this is no answer to the question for *name. */
static bool read_head(struct ss_view message, size_t *at, const struct wire_name *name,
                      enum ss_family family, unsigned *rcode, uint16_t counts[2])
{
    struct ss_reader in = {message.ptr, message.len};
    struct wire_name asked;
    uint16_t id, flags, questions, additional, type, class;

    if (!ss_read_u16be(&in, &id) || !ss_read_u16be(&in, &flags) ||
        !ss_read_u16be(&in, &questions) || !ss_read_u16be(&in, &counts[0]) ||
        !ss_read_u16be(&in, &counts[1]) || !ss_read_u16be(&in, &additional))
        return false;
    if ((flags & 0x8000) == 0 || (flags & 0x7800) != 0 || questions != 1)
        return false; /* not a response, or not to a plain query */
    *rcode = flags & 0x0f;
    *at = HEADER_LEN;
    if (!read_name(message, at, &asked) || !same_name(&asked, name))
        return false;
    in = reader_at(message, *at);
    if (!ss_read_u16be(&in, &type) || !ss_read_u16be(&in, &class) || class != CLASS_IN ||
        type != (family == SS_FAMILY_IPV4 ? TYPE_A : TYPE_AAAA))
        return false;
    *at = message.len - in.len;
    for (int i = 0; i < 2; i++) {
        if (counts[i] > RECORDS_MAX)
            counts[i] = RECORDS_MAX;
    }
    return true;
}

void ss_answer_read(struct ss_answer *answer, struct ss_view message, const char *name,
                    enum ss_family family)
{
    struct wire_name owner;
    uint16_t counts[2]; /* of the answers and of the authority section */
    unsigned rcode;
    size_t at;

    answer->status = SS_ERR_FORMAT;
    answer->has_ttl = false;
    answer->ttl_s = 0;
    answer->count = 0;
    if (!name_from_text(&owner, name) || !read_head(message, &at, &owner, family, &rcode, counts))
        return;
    if (rcode != RCODE_NONE && rcode != RCODE_NO_SUCH_NAME) {
        answer->status = SS_ERR_IO;
        return;
    }
    if (!follow_aliases(answer, message, at, counts[0], &owner) ||
        !collect_addresses(answer, message, &at, counts[0], &owner, family)) {
        answer->count = 0;
        return;
    }
    if (rcode == RCODE_NO_SUCH_NAME)
        answer->count = 0;
    answer->status = answer->count != 0 ? SS_OK : SS_ERR_NOT_FOUND;
    if (answer->count == 0) {
        /* What an alias says of its time limits a "no" too, but can't stand in for the SOA. */
        struct ss_answer negative = {.has_ttl = false};

        read_negative_ttl(&negative, message, at, counts[1], &owner);
        if (negative.has_ttl)
            limit_ttl(answer, negative.ttl_s);
        else
            answer->has_ttl = false;
    }
}

uint64_t ss_answer_lifetime_ms(const struct ss_answer *answer, uint32_t ttl_max_s)
{
    uint32_t s = answer->ttl_s;

    switch (answer->status) {
    case SS_OK:
        s = s < ttl_max_s ? s : ttl_max_s;
        break;
    case SS_ERR_NOT_FOUND:
        if (!answer->has_ttl)
            s = NEGATIVE_DEFAULT_S;
        else if (s < NEGATIVE_MIN_S)
            s = NEGATIVE_MIN_S;
        else if (s > NEGATIVE_MAX_S)
            s = NEGATIVE_MAX_S;
        break;
    case SS_ERR_IO:
    case SS_ERR_FORMAT:
        s = FAILED_S;
        break;
    case SS_ERR_TIMEOUT:
        s = SILENT_S;
        break;
    default: /* our own trouble, which says nothing of the name */
        s = 0;
        break;
    }
    return (uint64_t)s * 1000;
}
