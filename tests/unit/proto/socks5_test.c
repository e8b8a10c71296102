/* SOCKS5 messages: whole, cut at every byte, and wrong. */
#include "proto/socks5.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A reader of the bytes of a string constant, NULs included. */
#define WIRE(text) ((struct ss_reader){(const uint8_t *)(text), sizeof(text) - 1})

static void a_greeting_says_what_the_client_offers(void **state)
{
    static const struct {
        struct ss_reader wire;
        bool no_auth, password;
    } cases[] = {
        {{(const uint8_t *)"\5\0", 2}, false, false},
        {{(const uint8_t *)"\5\1\0", 3}, true, false},
        {{(const uint8_t *)"\5\1\2", 3}, false, true},
        {{(const uint8_t *)"\5\2\2\0", 4}, true, true},
        {{(const uint8_t *)"\5\3\1\x80\xff", 5}, false, false},
        {{(const uint8_t *)"\5\4\1\3\0\x7f", 6}, true, false},
        {{(const uint8_t *)"\5\2\0\0", 4}, true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_socks5_greeting greeting;

        for (size_t cut = 0; cut < cases[i].wire.len; cut++) {
            struct ss_reader in = {cases[i].wire.ptr, cut};

            assert_int_equal(ss_socks5_read_greeting(&in, &greeting), SS_NEED_INPUT);
            assert_int_equal(in.len, cut);
        }
        struct ss_reader in = cases[i].wire;
        assert_int_equal(ss_socks5_read_greeting(&in, &greeting), SS_OK);
        assert_int_equal(in.len, 0);
        assert_int_equal(greeting.no_auth, cases[i].no_auth);
        assert_int_equal(greeting.password, cases[i].password);
    }
}

static void the_longest_greeting_is_read_and_what_follows_is_left(void **state)
{
    uint8_t wire[2 + 255 + 3];
    struct ss_reader in = {wire, sizeof wire};
    struct ss_socks5_greeting greeting;

    (void)state;
    memset(wire, 9, sizeof wire);
    wire[0] = 5;
    wire[1] = 255;
    wire[256] = 2;
    wire[257] = 0; /* belongs to what follows */
    assert_int_equal(ss_socks5_read_greeting(&in, &greeting), SS_OK);
    assert_int_equal(in.len, 3);
    assert_true(greeting.password);
    assert_false(greeting.no_auth);
}

static void another_version_is_refused_at_its_first_byte(void **state)
{
    (void)state;
    for (int version = 0; version < 256; version++) {
        uint8_t byte = (uint8_t)version;
        struct ss_reader in = {&byte, 1};
        struct ss_socks5_greeting greeting;
        struct ss_socks5_login login;
        struct ss_socks5_request request;
        enum ss_socks5_reply refusal = SS_SOCKS5_FAILURE;

        assert_int_equal(ss_socks5_read_greeting(&in, &greeting),
                         version == 5 ? SS_NEED_INPUT : SS_ERR_FORMAT);
        assert_int_equal(ss_socks5_read_request(&in, &request, &refusal),
                         version == 5 ? SS_NEED_INPUT : SS_ERR_FORMAT);
        assert_int_equal(refusal, SS_SOCKS5_OK); /* closed without a word */
        assert_int_equal(ss_socks5_read_login(&in, &login),
                         version == 1 ? SS_NEED_INPUT : SS_ERR_FORMAT);
        assert_int_equal(in.len, 1);
    }
}

static void a_login_is_read_whole_or_not_at_all(void **state)
{
    const struct ss_reader wire = WIRE("\1\4user\6secret");
    struct ss_socks5_login login, before;
    struct ss_reader in;

    (void)state;
    memset(&login, 0x5a, sizeof login);
    before = login;
    for (size_t cut = 0; cut < wire.len; cut++) {
        in = (struct ss_reader){wire.ptr, cut};
        assert_int_equal(ss_socks5_read_login(&in, &login), SS_NEED_INPUT);
        assert_int_equal(in.len, cut);
        assert_memory_equal(&login, &before, sizeof login);
    }
    in = wire;
    assert_int_equal(ss_socks5_read_login(&in, &login), SS_OK);
    assert_int_equal(in.len, 0);
    assert_string_equal(login.user, "user");
    assert_string_equal(login.password, "secret");
}

static void names_and_passwords_have_0_to_255_bytes(void **state)
{
    uint8_t wire[1 + 256 + 256];
    struct ss_reader in = {wire, sizeof wire};
    struct ss_socks5_login login;

    (void)state;
    memset(wire, 0xff, sizeof wire);
    wire[0] = 1; /* and both lengths are 255 */
    assert_int_equal(ss_socks5_read_login(&in, &login), SS_OK);
    assert_int_equal(in.len, 0);
    assert_int_equal(strlen(login.user), 255);
    assert_int_equal(strlen(login.password), 255);
    in = WIRE("\1\0\0");
    assert_int_equal(ss_socks5_read_login(&in, &login), SS_OK);
    assert_string_equal(login.user, "");
    assert_string_equal(login.password, "");
}

static void a_nul_in_a_login_is_refused(void **state)
{
    struct ss_socks5_login login;
    struct ss_reader in = WIRE("\1\4us\0r\2pw");

    (void)state;
    assert_int_equal(ss_socks5_read_login(&in, &login), SS_ERR_FORMAT);
    in = WIRE("\1\4user\2p\0");
    assert_int_equal(ss_socks5_read_login(&in, &login), SS_ERR_FORMAT);
    in = WIRE("\1\1\0\1p");
    assert_int_equal(ss_socks5_read_login(&in, &login), SS_ERR_FORMAT);
}

static void a_request_is_read_whole_or_not_at_all(void **state)
{
    static const struct {
        struct ss_reader wire;
        const char *target;
    } cases[] = {
        {{(const uint8_t *)"\5\1\0\1\x7f\0\0\1\0\x50", 10}, "127.0.0.1:80"},
        {{(const uint8_t *)"\5\1\0\3\xc"
                           "example.test\1\xbb",
          19},
         "example.test:443"},
        {{(const uint8_t *)"\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x35", 22},
         "[2001:db8::1]:53"},
        {{(const uint8_t *)"\5\1\xee\1\x7f\0\0\1\0\x50", 10}, "127.0.0.1:80"}, /* reserved */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_socks5_request request;
        enum ss_socks5_reply refusal = SS_SOCKS5_FAILURE;
        char text[SS_TARGET_TEXT_MAX];
        struct ss_reader in;

        for (size_t cut = 0; cut < cases[i].wire.len; cut++) {
            in = (struct ss_reader){cases[i].wire.ptr, cut};
            assert_int_equal(ss_socks5_read_request(&in, &request, &refusal), SS_NEED_INPUT);
            assert_int_equal(in.len, cut);
            assert_int_equal(refusal, SS_SOCKS5_OK);
        }
        in = cases[i].wire;
        assert_int_equal(ss_socks5_read_request(&in, &request, &refusal), SS_OK);
        assert_int_equal(in.len, 0);
        assert_int_equal(refusal, SS_SOCKS5_OK);
        assert_int_equal(request.command, SS_SOCKS5_CONNECT);
        assert_string_equal(ss_target_format(&request.target, text), cases[i].target);
    }
}

static void any_command_is_read_for_the_caller_to_judge(void **state)
{
    (void)state;
    for (int command = 0; command < 256; command++) {
        uint8_t wire[] = {5, (uint8_t)command, 0, 1, 0, 0, 0, 0, 0, 0};
        struct ss_reader in = {wire, sizeof wire};
        struct ss_socks5_request request;
        enum ss_socks5_reply refusal;

        assert_int_equal(ss_socks5_read_request(&in, &request, &refusal), SS_OK);
        assert_int_equal(request.command, command);
    }
}

static void an_unknown_address_type_is_told_as_soon_as_it_is_seen(void **state)
{
    (void)state;
    for (int atyp = 0; atyp < 256; atyp++) {
        uint8_t wire[] = {5, 1, 0, (uint8_t)atyp};
        struct ss_reader in = {wire, sizeof wire};
        struct ss_socks5_request request;
        enum ss_socks5_reply refusal;
        bool known = atyp == 1 || atyp == 3 || atyp == 4;

        assert_int_equal(ss_socks5_read_request(&in, &request, &refusal),
                         known ? SS_NEED_INPUT : SS_ERR_FORMAT);
        assert_int_equal(refusal, known ? SS_SOCKS5_OK : SS_SOCKS5_NO_ATYP);
        assert_int_equal(in.len, sizeof wire);
    }
}

static void a_bad_name_is_a_general_failure(void **state)
{
    struct ss_socks5_request request;
    enum ss_socks5_reply refusal;
    struct ss_reader in = WIRE("\5\1\0\3\0\0\x50");

    (void)state;
    assert_int_equal(ss_socks5_read_request(&in, &request, &refusal), SS_ERR_FORMAT);
    assert_int_equal(refusal, SS_SOCKS5_FAILURE);
    in = WIRE("\5\1\0\3\3a\0b\0\x50");
    assert_int_equal(ss_socks5_read_request(&in, &request, &refusal), SS_ERR_FORMAT);
    assert_int_equal(refusal, SS_SOCKS5_FAILURE);
}

/* One byte more is offered at a time, as a slow client sends them. */
static void a_whole_dialogue_byte_by_byte_comes_to_the_same(void **state)
{
    static const uint8_t wire[] = "\5\2\0\2"
                                  "\1\4user\2pw"
                                  "\5\1\0\3\4host\0\x50"
                                  "data";
    struct ss_socks5_greeting greeting = {false, false};
    struct ss_socks5_login login = {"", ""};
    struct ss_socks5_request request = {0};
    enum ss_socks5_reply refusal;
    int message = 0;
    size_t taken = 0;

    (void)state;
    for (size_t have = 0; have < sizeof wire - 1 && message < 3; have++) {
        struct ss_reader in = {wire + taken, have - taken};
        enum ss_status status = message == 0   ? ss_socks5_read_greeting(&in, &greeting)
                                : message == 1 ? ss_socks5_read_login(&in, &login)
                                               : ss_socks5_read_request(&in, &request, &refusal);

        if (status == SS_NEED_INPUT)
            continue;
        assert_int_equal(status, SS_OK);
        assert_int_equal(in.len, 0); /* it was ready with its last byte */
        taken = have;
        message++;
    }
    assert_int_equal(message, 3);
    assert_true(greeting.no_auth && greeting.password);
    assert_string_equal(login.user, "user");
    assert_string_equal(login.password, "pw");
    assert_string_equal(request.target.name, "host");
    assert_memory_equal(wire + taken, "data", 4);
}

static void short_answers_have_two_bytes(void **state)
{
    uint8_t wire[4] = {0};
    struct ss_writer out = {wire, sizeof wire};

    (void)state;
    assert_int_equal(ss_socks5_write_choice(&out, SS_SOCKS5_NO_METHOD), SS_OK);
    assert_int_equal(ss_socks5_write_login_status(&out, 1), SS_OK);
    assert_memory_equal(wire, "\5\xff\1\1", 4);
    out = (struct ss_writer){wire, 1};
    assert_int_equal(ss_socks5_write_choice(&out, SS_SOCKS5_NO_AUTH), SS_NEED_ROOM);
    assert_int_equal(ss_socks5_write_login_status(&out, 0), SS_NEED_ROOM);
    assert_int_equal(out.len, 1);
}

static void a_reply_carries_the_bound_address_of_the_clients_family(void **state)
{
    static const struct {
        const char *ip;
        const char *wire;
        size_t len;
    } cases[] = {
        {NULL, "\5\0\0\1\0\0\0\0\0\0", 10},
        {"192.0.2.1", "\5\0\0\1\xc0\0\2\1\x12\x34", 10},
        {"::ffff:192.0.2.1", "\5\0\0\1\xc0\0\2\1\x12\x34", 10},
        {"::1", "\5\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\x12\x34", 22},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ss_addr bound = {.port = 0x1234};
        const struct ss_addr *given = cases[i].ip != NULL ? &bound : NULL;
        uint8_t wire[32];

        if (given != NULL)
            assert_int_equal(ss_ip_parse(&bound.ip, cases[i].ip), SS_OK);
        for (size_t room = 0; room <= cases[i].len; room++) {
            struct ss_writer out = {wire, room};
            bool fits = room == cases[i].len;

            assert_int_equal(ss_socks5_write_reply(&out, SS_SOCKS5_OK, given),
                             fits ? SS_OK : SS_NEED_ROOM);
            assert_int_equal(out.len, fits ? 0 : room);
            assert_ptr_equal(out.ptr, fits ? wire + room : wire);
        }
        assert_memory_equal(wire, cases[i].wire, cases[i].len);
    }
}

static void a_reply_says_why(void **state)
{
    (void)state;
    for (int reply = SS_SOCKS5_OK; reply <= SS_SOCKS5_NO_ATYP; reply++) {
        uint8_t wire[10];
        struct ss_writer out = {wire, sizeof wire};

        assert_int_equal(ss_socks5_write_reply(&out, (enum ss_socks5_reply)reply, NULL), SS_OK);
        assert_int_equal(wire[1], reply);
    }
}

static void a_datagram_has_its_target_in_front(void **state)
{
    const struct ss_reader wire = WIRE("\0\0\0\1\x7f\0\0\1\0\x35payload");
    struct ss_target target;
    struct ss_reader in;

    (void)state;
    for (size_t cut = 0; cut < 10; cut++) {
        in = (struct ss_reader){wire.ptr, cut};
        assert_int_equal(ss_socks5_read_udp(&in, &target), SS_NEED_INPUT);
        assert_int_equal(in.len, cut);
    }
    in = wire;
    assert_int_equal(ss_socks5_read_udp(&in, &target), SS_OK);
    assert_int_equal(target.port, 53);
    assert_int_equal(in.len, 7);
    assert_memory_equal(in.ptr, "payload", 7);
    in = (struct ss_reader){wire.ptr, 10}; /* an empty payload is one */
    assert_int_equal(ss_socks5_read_udp(&in, &target), SS_OK);
    assert_int_equal(in.len, 0);
}

static void fragments_and_bad_targets_are_refused(void **state)
{
    struct ss_target target;
    struct ss_reader in;

    (void)state;
    for (int fragment = 1; fragment < 256; fragment++) {
        uint8_t wire[] = {0, 0, (uint8_t)fragment, 1, 127, 0, 0, 1, 0, 53};

        in = (struct ss_reader){wire, sizeof wire};
        assert_int_equal(ss_socks5_read_udp(&in, &target), SS_ERR_FORMAT);
        assert_int_equal(in.len, sizeof wire);
    }
    in = WIRE("\0\0\0\2\x7f\0\0\1\0\x35");
    assert_int_equal(ss_socks5_read_udp(&in, &target), SS_ERR_FORMAT);
    in = WIRE("\0\0\0\3\0\0\x35");
    assert_int_equal(ss_socks5_read_udp(&in, &target), SS_ERR_FORMAT);
}

int socks5_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_greeting_says_what_the_client_offers),
        cmocka_unit_test(the_longest_greeting_is_read_and_what_follows_is_left),
        cmocka_unit_test(another_version_is_refused_at_its_first_byte),
        cmocka_unit_test(a_login_is_read_whole_or_not_at_all),
        cmocka_unit_test(names_and_passwords_have_0_to_255_bytes),
        cmocka_unit_test(a_nul_in_a_login_is_refused),
        cmocka_unit_test(a_request_is_read_whole_or_not_at_all),
        cmocka_unit_test(any_command_is_read_for_the_caller_to_judge),
        cmocka_unit_test(an_unknown_address_type_is_told_as_soon_as_it_is_seen),
        cmocka_unit_test(a_bad_name_is_a_general_failure),
        cmocka_unit_test(a_whole_dialogue_byte_by_byte_comes_to_the_same),
        cmocka_unit_test(short_answers_have_two_bytes),
        cmocka_unit_test(a_reply_carries_the_bound_address_of_the_clients_family),
        cmocka_unit_test(a_reply_says_why),
        cmocka_unit_test(a_datagram_has_its_target_in_front),
        cmocka_unit_test(fragments_and_bad_targets_are_refused),
    };

    return cmocka_run_group_tests_name("socks5", tests, NULL, NULL);
}
