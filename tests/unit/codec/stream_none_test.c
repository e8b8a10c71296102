/* A build without the stream methods: none of them is known, and all others are. */
#include "codec/method.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void no_stream_method_is_known(void **state)
{
    size_t count;
    const struct ss_method *all = ss_method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++)
        assert_int_not_equal(all[i].family, SS_METHODS_STREAM);
    assert_null(ss_method_find("aes-256-cfb"));
    assert_null(ss_method_find("chacha20-ietf"));
}

static void all_others_are_known(void **state)
{
    static const char *const names[] = {
        "aes-128-gcm",
        "aes-192-gcm",
        "aes-256-gcm",
        "chacha20-ietf-poly1305",
        "xchacha20-ietf-poly1305",
        "2022-blake3-aes-128-gcm",
        "2022-blake3-aes-256-gcm",
        "2022-blake3-chacha20-poly1305",
        "2022-blake3-chacha8-poly1305",
        "none",
    };
    (void)state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct ss_method *method = ss_method_find(names[i]);

        assert_non_null(method);
        if (method->family != SS_METHODS_PLAIN) {
            assert_non_null(ss_aead_best(method->aead));
            assert_non_null(ss_aead_best(method->packet_aead));
        }
    }
}

int stream_none_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_stream_method_is_known),
        cmocka_unit_test(all_others_are_known),
    };

    return cmocka_run_group_tests_name("codec/stream_none", tests, NULL, NULL);
}
