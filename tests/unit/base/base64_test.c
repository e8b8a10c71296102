/* Base64: known answers, and what is refused. */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_vectors_of_rfc_4648_hold_both_ways(void **state)
{
    static const struct {
        const char *bytes;
        const char *text;
    } vectors[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        uint8_t bytes[8];
        char text[SS_BASE64_LEN(6) + 1];
        size_t len;

        ss_base64_encode(text, (const uint8_t *)vectors[i].bytes, strlen(vectors[i].bytes),
                         SS_BASE64_STANDARD);
        assert_string_equal(text, vectors[i].text);
        assert_int_equal(strlen(text), SS_BASE64_LEN(strlen(vectors[i].bytes)));
        assert_int_equal(
            ss_base64_decode(bytes, sizeof bytes, &len, text, strlen(text), SS_BASE64_STANDARD),
            SS_OK);
        assert_int_equal(len, strlen(vectors[i].bytes));
        assert_memory_equal(bytes, vectors[i].bytes, len);
    }
}

static void every_length_comes_back_in_both_alphabets(void **state)
{
    uint8_t bytes[70], back[70];
    char text[SS_BASE64_LEN(70) + 1];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 89 + 251);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        for (int alphabet = SS_BASE64_STANDARD; alphabet <= SS_BASE64_URL; alphabet++) {
            size_t back_len;

            ss_base64_encode(text, bytes, len, (enum ss_base64_alphabet)alphabet);
            assert_int_equal(ss_base64_decode(back, sizeof back, &back_len, text, strlen(text),
                                              (enum ss_base64_alphabet)alphabet),
                             SS_OK);
            assert_int_equal(back_len, len);
            assert_memory_equal(back, bytes, len);
            assert_int_equal(ss_base64_decode(back, sizeof back, &back_len, text, strlen(text),
                                              SS_BASE64_EITHER),
                             SS_OK);
        }
    }
}

static void the_url_alphabet_has_no_padding_and_its_own_two_digits(void **state)
{
    static const uint8_t bytes[] = {0xfb, 0xff, 0xbf, 0xfb};
    char text[SS_BASE64_LEN(4) + 1];

    (void)state;
    ss_base64_encode(text, bytes, sizeof bytes, SS_BASE64_URL);
    assert_string_equal(text, "-_-_-w");
    ss_base64_encode(text, bytes, sizeof bytes, SS_BASE64_STANDARD);
    assert_string_equal(text, "+/+/+w==");
}

static void padding_may_be_left_out(void **state)
{
    uint8_t bytes[4];
    size_t len;

    (void)state;
    assert_int_equal(ss_base64_decode(bytes, 4, &len, "Zm8", 3, SS_BASE64_STANDARD), SS_OK);
    assert_int_equal(len, 2);
    assert_int_equal(ss_base64_decode(bytes, 4, &len, "Zg", 2, SS_BASE64_STANDARD), SS_OK);
    assert_int_equal(len, 1);
    assert_int_equal(ss_base64_decode(bytes, 4, &len, "Zg==", 4, SS_BASE64_URL), SS_OK);
    assert_int_equal(len, 1);
}

static void what_is_not_base64_is_refused_and_writes_nothing(void **state)
{
    static const struct {
        const char *text;
        enum ss_base64_alphabet alphabet;
    } refused[] = {
        {"Z", SS_BASE64_EITHER},        /* six bits are no byte */
        {"Zm9vY", SS_BASE64_EITHER},    /* nor are the last six here */
        {"Zm9v=", SS_BASE64_EITHER},    /* padding where none is needed */
        {"Zm9v====", SS_BASE64_EITHER}, /* a whole group of it */
        {"Zg=", SS_BASE64_EITHER},      /* too little */
        {"Zg===", SS_BASE64_EITHER},    /* too much */
        {"Z===", SS_BASE64_EITHER},     /* far too much */
        {"Zm8==", SS_BASE64_EITHER},    /* one too many */
        {"=", SS_BASE64_EITHER},        /* nothing else */
        {"====", SS_BASE64_EITHER},     /* nothing else, a group */
        {"Zg==Zg==", SS_BASE64_EITHER}, /* inside */
        {"Z=g=", SS_BASE64_EITHER},     /* inside */
        {"Zh==", SS_BASE64_EITHER},     /* unused bits are not zero */
        {"Zm9", SS_BASE64_EITHER},      /* the same without padding */
        {"Zm9v\n", SS_BASE64_EITHER},   /* a line end */
        {" Zm9v", SS_BASE64_EITHER},    /* a blank */
        {"Zm 9v", SS_BASE64_EITHER},    /* a blank inside */
        {"Zm9\xff", SS_BASE64_EITHER},  /* not ASCII */
        {"Zm9.", SS_BASE64_EITHER},     /* no digit */
        {"+/+/", SS_BASE64_URL},        /* the other alphabet */
        {"-_-_", SS_BASE64_STANDARD},   /* the other alphabet */
        {"+/-_", SS_BASE64_EITHER},     /* both alphabets at once */
        {"-___abc+", SS_BASE64_EITHER}, /* both alphabets at once */
    };

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        uint8_t bytes[16];
        size_t len = 99;

        memset(bytes, 0x55, sizeof bytes);
        if (ss_base64_decode(bytes, sizeof bytes, &len, refused[i].text, strlen(refused[i].text),
                             refused[i].alphabet) != SS_ERR_FORMAT)
            fail_msg("not refused: %s", refused[i].text);
        assert_int_equal(len, 0);
        for (size_t k = 0; k < sizeof bytes; k++)
            assert_int_equal(bytes[k], 0x55);
    }
}

static void a_nul_inside_the_text_is_no_end(void **state)
{
    uint8_t bytes[16];
    size_t len;

    (void)state;
    assert_int_equal(ss_base64_decode(bytes, sizeof bytes, &len, "Zm9v\0m9v", 8, SS_BASE64_EITHER),
                     SS_ERR_FORMAT);
}

static void every_byte_that_is_no_digit_is_refused(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[4] = {'Z', 'm', (char)c, 'v'};
        uint8_t bytes[3];
        size_t len;
        bool digit = c != 0 && strchr(digits, c) != NULL;

        assert_int_equal(ss_base64_decode(bytes, 3, &len, text, 4, SS_BASE64_STANDARD),
                         digit ? SS_OK : SS_ERR_FORMAT);
    }
}

static void too_little_room_says_how_much_is_needed_and_writes_nothing(void **state)
{
    uint8_t bytes[6];

    (void)state;
    for (size_t cap = 0; cap < 6; cap++) {
        size_t len = 0;

        memset(bytes, 0x55, sizeof bytes);
        assert_int_equal(ss_base64_decode(bytes, cap, &len, "Zm9vYmFy", 8, SS_BASE64_STANDARD),
                         SS_NEED_ROOM);
        assert_int_equal(len, 6);
        assert_int_equal(bytes[0], 0x55);
    }
}

int base64_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_4648_hold_both_ways),
        cmocka_unit_test(every_length_comes_back_in_both_alphabets),
        cmocka_unit_test(the_url_alphabet_has_no_padding_and_its_own_two_digits),
        cmocka_unit_test(padding_may_be_left_out),
        cmocka_unit_test(what_is_not_base64_is_refused_and_writes_nothing),
        cmocka_unit_test(a_nul_inside_the_text_is_no_end),
        cmocka_unit_test(every_byte_that_is_no_digit_is_refused),
        cmocka_unit_test(too_little_room_says_how_much_is_needed_and_writes_nothing),
    };

    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
