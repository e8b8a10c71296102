/* Answers of name servers: what is read is within its bounds, belongs to one question only, and
 * does not depend on the case of letters or on what stands behind the message. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "resolver/answer.h"

#define TTL_MAX_S 3600
#define BEHIND    8

static struct ss_answer read_as(const uint8_t *bytes, size_t len, const char *name,
                                enum ss_family family)
{
    struct ss_answer answer;

    ss_answer_read(&answer, (struct ss_view){bytes, len}, name, family);
    CHECK((answer.status == SS_OK) == (answer.count != 0));
    CHECK(answer.status == SS_OK || answer.status == SS_ERR_NOT_FOUND ||
          answer.status == SS_ERR_FORMAT || answer.status == SS_ERR_IO);
    CHECK(answer.count <= SS_ADDRESSES_MAX);
    CHECK(answer.status != SS_OK || answer.has_ttl);
    CHECK(ss_answer_lifetime_ms(&answer, TTL_MAX_S) <= TTL_MAX_S * 1000);
    for (size_t i = 0; i < answer.count; i++)
        CHECK(answer.ips[i].family == family && answer.ips[i].scope == 0);
    return answer;
}

static void check_same(const struct ss_answer *a, const struct ss_answer *b)
{
    CHECK(a->status == b->status && a->count == b->count);
    CHECK(a->has_ttl == b->has_ttl && a->ttl_s == b->ttl_s);
    for (size_t i = 0; i < a->count; i++)
        CHECK(ss_ip_equal(&a->ips[i], &b->ips[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const enum ss_family families[2] = {SS_FAMILY_IPV4, SS_FAMILY_IPV6};
    uint8_t *longer = malloc(len + BEHIND);

    CHECK(longer != NULL);
    if (len != 0)
        memcpy(longer, bytes, len);
    memset(longer + len, 0xc0, BEHIND);
    for (int i = 0; i < 2; i++) {
        const struct ss_answer answer = read_as(bytes, len, "a.test.", families[i]);
        struct ss_answer other = read_as(bytes, len, "A.Test", families[i]);

        check_same(&answer, &other);
        if (answer.status == SS_ERR_FORMAT)
            continue;
        other = read_as(longer, len + BEHIND, "a.test.", families[i]);
        if (answer.status ==
            SS_OK) /* an authority section may have been cut off, and gets read now */
            check_same(&answer, &other);
        CHECK(answer.status == other.status);
        other = read_as(bytes, len, "b.test.", families[i]);
        CHECK(other.status == SS_ERR_FORMAT);
        other = read_as(bytes, len, "a.test.", families[1 - i]);
        CHECK(other.status == SS_ERR_FORMAT);
    }
    free(longer);
    return 0;
}
