/* The known answers of tests/vectors/address.json. */
#include "proto/target.h"

#include <stdbool.h>
#include <string.h>

#include "vectors/read.h"

#define WIRE_MAX 512

static int load(void **state)
{
    *state = vectors_load("address.json");
    return 0;
}

static int unload(void **state)
{
    json_decref(*state);
    return 0;
}

static void each_valid_target_is_written_and_read_as_recorded(void **state)
{
    json_t *entries = json_object_get(*state, "valid");
    size_t index;
    json_t *entry;

    assert_true(json_array_size(entries) >= 13);
    json_array_foreach(entries, index, entry)
    {
        const char *host = vector_text(entry, "host");
        uint16_t port = (uint16_t)vector_number(entry, "port");
        uint8_t wire[WIRE_MAX], written[SS_TARGET_MAX];
        size_t len = vector_bytes(entry, "encoded", wire, sizeof wire);
        struct ss_reader in = {wire, len};
        struct ss_writer out = {written, sizeof written};
        struct ss_target target, from_host;

        assert_int_equal(ss_target_read(&in, &target), SS_OK);
        assert_int_equal(in.len, 0);
        assert_int_equal(target.atyp, vector_number(entry, "atyp"));
        assert_int_equal(target.port, port);
        assert_int_equal(ss_target_from_host(&from_host, host, port), SS_OK);
        assert_int_equal(from_host.atyp, target.atyp);
        assert_string_equal(from_host.name, target.name);
        assert_int_equal(ss_target_write(&out, &from_host), SS_OK);
        assert_int_equal(sizeof written - out.len, len);
        assert_memory_equal(written, wire, len);

        for (size_t cut = 0; cut < len; cut++) { /* every prefix is only incomplete */
            in = (struct ss_reader){wire, cut};
            assert_int_equal(ss_target_read(&in, &target), SS_NEED_INPUT);
            assert_ptr_equal(in.ptr, wire);
            assert_int_equal(in.len, cut);
        }
    }
}

static void each_invalid_target_is_refused_and_consumes_nothing(void **state)
{
    json_t *entries = json_object_get(*state, "invalid");
    size_t index;
    json_t *entry;

    assert_true(json_array_size(entries) >= 13);
    json_array_foreach(entries, index, entry)
    {
        uint8_t wire[WIRE_MAX];
        size_t len = vector_bytes(entry, "encoded", wire, sizeof wire);
        struct ss_reader in = {wire, len};
        struct ss_target target;
        const char *why = vector_text(entry, "why");
        /* What can't become right is refused at once; what is cut may still be completed. The name
         * with the missing byte takes in the port's zero, so that it is wrong already. */
        bool wrong = (strncmp(why, "type ", 5) == 0 && strcmp(why, "type only") != 0) ||
                     strcmp(why, "domain of length zero") == 0 ||
                     strcmp(why, "domain of 3 with a missing byte") == 0;

        if (ss_target_read(&in, &target) != (wrong ? SS_ERR_FORMAT : SS_NEED_INPUT))
            fail_msg("%s", why);
        assert_ptr_equal(in.ptr, wire);
        assert_int_equal(in.len, len);
    }
}

int target_vectors_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_valid_target_is_written_and_read_as_recorded),
        cmocka_unit_test(each_invalid_target_is_refused_and_consumes_nothing),
    };

    return cmocka_run_group_tests_name("target vectors", tests, load, unload);
}
