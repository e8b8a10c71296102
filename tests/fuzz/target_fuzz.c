/* A target that was read is written as it came, and every part of it is only incomplete. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "proto/target.h"

/* Bytes between the members do not count. */
static bool same_target(const struct ss_target *a, const struct ss_target *b)
{
    return a->atyp == b->atyp && a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0 &&
           strcmp(a->name, b->name) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ss_reader in = {bytes, len};
    struct ss_target target, again;
    struct ss_ip ip;
    uint8_t wire[SS_TARGET_MAX];
    struct ss_writer out = {wire, sizeof wire};
    char text[SS_TARGET_TEXT_MAX];
    enum ss_status status = ss_target_read(&in, &target);
    size_t used = len - in.len;

    if (status != SS_OK) {
        CHECK(status == SS_NEED_INPUT || status == SS_ERR_FORMAT);
        CHECK(in.ptr == bytes && in.len == len);
        CHECK(status != SS_NEED_INPUT || len < SS_TARGET_MAX);
        return 0;
    }

    CHECK(in.ptr == bytes + used);
    CHECK(ss_target_write(&out, &target) == SS_OK);
    CHECK(sizeof wire - out.len == used);
    CHECK(memcmp(wire, bytes, used) == 0);
    for (size_t cut = 0; cut < used; cut++) {
        struct ss_reader shorter = {bytes, cut};
        struct ss_writer tight = {wire, cut};

        CHECK(ss_target_read(&shorter, &again) == SS_NEED_INPUT);
        CHECK(ss_target_write(&tight, &target) == SS_NEED_ROOM);
        CHECK(tight.ptr == wire && tight.len == cut);
    }

    /* A log line shows one word without control bytes, whatever the name was. */
    ss_target_format(&target, text);
    CHECK(strlen(text) < SS_TARGET_TEXT_MAX);
    for (const char *c = text; *c != '\0'; c++)
        CHECK((unsigned char)*c > ' ' && *c != 0x7f);

    if (target.atyp == SS_ATYP_NAME) {
        CHECK(strlen(target.name) == bytes[1]);
        CHECK(ss_target_from_host(&again, target.name, target.port) == SS_OK);
        CHECK(again.port == target.port);
        CHECK(again.atyp != SS_ATYP_NAME || same_target(&again, &target));
        /* A name is the text of an address exactly when it becomes one, zones aside. */
        if (again.atyp != SS_ATYP_NAME)
            CHECK(ss_target_ip(&target, &ip) && ip.scope == 0);
        else if (ss_target_ip(&target, &ip))
            CHECK(strchr(target.name, '%') != NULL);
    } else {
        CHECK(ss_target_ip(&target, &ip));
    }
    return 0;
}
