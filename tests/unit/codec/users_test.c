/* Keys of the 2022 methods, chains of them, and lists of users. */
#include "codec/users.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "codec/profile.h"
#include "crypto/random.h"
#include "support.h"
#include "vectors/read.h"

#define KEY_16  "AAECAwQFBgcICQoLDA0ODw=="
#define KEY_16B "EBESExQVFhcYGRobHB0eHw"
#define KEY_16C "ISIjJCUmJygpKissLS4vMA=="
#define KEY_32  "-_-_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ"

struct attempt {
    enum ss_status status;
    struct ss_key_fault fault;
    size_t identities;
};

static struct attempt try_key(const char *method, const char *text)
{
    struct attempt attempt;
    const struct ss_profile_options options = {
        .method = ss_method_find(method),
        .password = {(const uint8_t *)text, strlen(text)},
        .fault = &attempt.fault,
    };
    struct ss_profile *profile;

    memset(&attempt, 0, sizeof attempt);
    attempt.status = ss_profile_new(&profile, &options);
    if (profile != NULL)
        attempt.identities = ss_profile_identity_count(profile);
    ss_profile_release(profile);
    return attempt;
}

static void keys_in_either_alphabet_padded_or_not(void **state)
{
    static const char *const good[] = {"+/+/CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ=",
                                       "+/+/CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ",
                                       "-_-_CAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQ=", KEY_32};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(try_key("2022-blake3-aes-256-gcm", good[i]).status, SS_OK);
        assert_int_equal(try_key("2022-blake3-chacha20-poly1305", good[i]).status, SS_OK);
        assert_int_equal(try_key("2022-blake3-chacha8-poly1305", good[i]).status, SS_OK);
    }
    assert_int_equal(try_key("2022-blake3-aes-128-gcm", KEY_16).status, SS_OK);
}

static void chains_of_keys(void **state)
{
    static const char two[] = KEY_16 ":" KEY_16B;
    static const char three[] = KEY_16B ":" KEY_16 ":" KEY_16B;
    char many[(SS_CHAIN_MAX + 1) * sizeof KEY_16] = "";
    struct attempt attempt;

    (void)state;
    attempt = try_key("2022-blake3-aes-128-gcm", KEY_16);
    assert_true(attempt.status == SS_OK && attempt.identities == 0);
    attempt = try_key("2022-blake3-aes-128-gcm", two);
    assert_true(attempt.status == SS_OK && attempt.identities == 1);
    attempt = try_key("2022-blake3-aes-128-gcm", three);
    assert_true(attempt.status == SS_OK && attempt.identities == 2);
    for (int i = 0; i < SS_CHAIN_MAX; i++)
        strcat(strcat(many, i != 0 ? ":" : ""), KEY_16);
    attempt = try_key("2022-blake3-aes-128-gcm", many);
    assert_true(attempt.status == SS_OK && attempt.identities == SS_CHAIN_MAX - 1);
    attempt = try_key("2022-blake3-aes-128-gcm", strcat(many, ":" KEY_16));
    assert_int_equal(attempt.status, SS_ERR_KEY);
    assert_int_equal(attempt.fault.kind, SS_KEY_CHAIN_TOO_LONG);
    assert_int_equal(attempt.fault.given, SS_CHAIN_MAX + 1);
    attempt = try_key("2022-blake3-chacha20-poly1305", KEY_32 ":" KEY_32);
    assert_int_equal(attempt.status, SS_ERR_KEY);
    assert_int_equal(attempt.fault.kind, SS_KEY_HAS_NO_CHAINS);
}

static void a_wrong_key_is_described_in_numbers(void **state)
{
    static const struct {
        const char *method, *text;
        enum ss_key_fault_kind kind;
        size_t needed, given, position;
    } bad[] = {
        {"2022-blake3-aes-128-gcm", "", SS_KEY_HAS_OTHER_LENGTH, 16, 0, 0},
        {"2022-blake3-aes-128-gcm", "AAAA", SS_KEY_HAS_OTHER_LENGTH, 16, 3, 0},
        {"2022-blake3-aes-128-gcm", KEY_32, SS_KEY_HAS_OTHER_LENGTH, 16, 32, 0},
        {"2022-blake3-aes-256-gcm", KEY_16, SS_KEY_HAS_OTHER_LENGTH, 32, 16, 0},
        {"2022-blake3-aes-256-gcm", KEY_32 "AAAA", SS_KEY_HAS_OTHER_LENGTH, 32, 35, 0},
        {"2022-blake3-chacha8-poly1305", KEY_16, SS_KEY_HAS_OTHER_LENGTH, 32, 16, 0},
        {"2022-blake3-aes-256-gcm", "a passphrase", SS_KEY_NOT_BASE64, 32, 0, 0},
        {"2022-blake3-aes-128-gcm", KEY_16 ":", SS_KEY_HAS_OTHER_LENGTH, 16, 0, 1},
        {"2022-blake3-aes-128-gcm", ":" KEY_16, SS_KEY_HAS_OTHER_LENGTH, 16, 0, 0},
        {"2022-blake3-aes-128-gcm", KEY_16 ":" KEY_16 ":?", SS_KEY_NOT_BASE64, 16, 0, 2},
        {"2022-blake3-aes-128-gcm", KEY_16 ":" KEY_32, SS_KEY_HAS_OTHER_LENGTH, 16, 32, 1},
    };
    char longer[100];
    struct attempt attempt;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        attempt = try_key(bad[i].method, bad[i].text);
        assert_int_equal(attempt.status, SS_ERR_KEY);
        assert_int_equal(attempt.fault.kind, bad[i].kind);
        assert_int_equal(attempt.fault.needed, bad[i].needed);
        assert_int_equal(attempt.fault.given, bad[i].given);
        assert_int_equal(attempt.fault.position, bad[i].position);
    }
    /* One that is longer than any key is measured, too. */
    memset(longer, 'A', sizeof longer);
    longer[64] = '\0';
    attempt = try_key("2022-blake3-aes-256-gcm", longer);
    assert_int_equal(attempt.fault.kind, SS_KEY_HAS_OTHER_LENGTH);
    assert_int_equal(attempt.fault.given, 48);
}

static void a_raw_key_has_exactly_the_length(void **state)
{
    static const uint8_t key[40];
    struct ss_key_fault fault;
    struct ss_profile_options options = {.method = ss_method_find("2022-blake3-aes-256-gcm"),
                                         .fault = &fault};
    struct ss_profile *profile;

    (void)state;
    for (size_t len = 0; len <= sizeof key; len++) {
        options.key = (struct ss_view){key, len};
        assert_int_equal(ss_profile_new(&profile, &options), len == 32 ? SS_OK : SS_ERR_KEY);
        assert_int_equal(fault.kind, len == 32 ? SS_KEY_IS_FINE : SS_KEY_HAS_OTHER_LENGTH);
        assert_int_equal(fault.given, len == 32 ? 0 : len);
        ss_profile_release(profile);
    }
}

static struct ss_view view_of(const char *text)
{
    return (struct ss_view){(const uint8_t *)text, strlen(text)};
}

static void a_bad_list_says_whose_key_it_is(void **state)
{
    const struct ss_method *method = ss_method_find("2022-blake3-aes-128-gcm");
    struct ss_user_options list[] = {
        {.name = "a", .password = view_of(KEY_16)},
        {.name = "b", .password = view_of(KEY_16B)},
        {.name = "c", .password = view_of(KEY_32)},
    };
    struct ss_users *users;
    struct ss_key_fault fault;

    (void)state;
    assert_int_equal(ss_users_new(&users, method, list, 3, &fault), SS_ERR_KEY);
    assert_null(users);
    assert_int_equal(fault.user, 2);
    assert_int_equal(fault.kind, SS_KEY_HAS_OTHER_LENGTH);
    assert_int_equal(fault.given, 32);
    list[2].password = view_of("EBESExQVFhcYGRobHB0eHw=="); /* b's, written in another way */
    assert_int_equal(ss_users_new(&users, method, list, 3, &fault), SS_ERR_KEY);
    assert_int_equal(fault.user, 2);
    assert_int_equal(fault.kind, SS_KEY_IS_DOUBLE);
    list[2].password = view_of(KEY_16 ":" KEY_16B);
    assert_int_equal(ss_users_new(&users, method, list, 3, &fault), SS_ERR_KEY);
    assert_int_equal(fault.kind, SS_KEY_OF_SERVER_IS_CHAIN);
    assert_int_equal(ss_users_new(&users, method, list, 2, &fault), SS_OK);
    assert_int_equal(ss_users_count(users), 2);
    assert_string_equal(ss_users_get(users, 1)->name, "b");
    assert_null(ss_users_get(users, 2));
    ss_users_release(users);
    assert_int_equal(ss_users_new(&users, method, NULL, 0, &fault), SS_OK);
    ss_users_release(users);
    assert_int_equal(
        ss_users_new(&users, ss_method_find("2022-blake3-chacha20-poly1305"), list, 2, &fault),
        SS_ERR_KEY);
    assert_int_equal(fault.kind, SS_KEY_HAS_NO_CHAINS);
}

static void a_server_with_users_has_one_key_of_an_aes_method(void **state)
{
    const struct ss_method *method = ss_method_find("2022-blake3-aes-128-gcm");
    const struct ss_user_options user = {.name = "a", .password = view_of(KEY_16)};
    const struct ss_endpoint host = {.host = "next.test", .port = 8388};
    const struct ss_user_options next = {.name = "a", .password = view_of(KEY_16), .next = &host};
    struct ss_key_fault fault;
    struct ss_profile_options options = {.method = method, .fault = &fault};
    struct ss_profile *profile;

    (void)state;
    assert_int_equal(ss_users_new(&options.users, method, &user, 1, &fault), SS_OK);
    options.password = view_of(KEY_16 ":" KEY_16B);
    assert_int_equal(ss_profile_new(&profile, &options), SS_ERR_KEY);
    assert_int_equal(fault.kind, SS_KEY_OF_SERVER_IS_CHAIN);
    options.password = view_of(KEY_16B);
    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    ss_profile_release(profile);
    /* The key that all users have is nobody's own. */
    options.password = view_of(KEY_16);
    assert_int_equal(ss_profile_new(&profile, &options), SS_ERR_KEY);
    assert_int_equal(fault.kind, SS_KEY_IS_THE_SERVERS);
    assert_int_equal(fault.user, 0);
    ss_users_release(options.users);
    assert_int_equal(ss_users_new(&options.users, method, &next, 1, &fault), SS_OK);
    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    ss_profile_release(profile);
    options.method = ss_method_find("2022-blake3-chacha20-poly1305");
    options.password = view_of(KEY_32);
    assert_int_equal(ss_profile_new(&profile, &options), SS_ERR_KEY);
    assert_int_equal(fault.kind, SS_KEY_HAS_NO_CHAINS);
    ss_users_release(options.users);
}

/* A chain is a client's; a server without users that was given one does not begin. */
static void a_server_takes_no_chain(void **state)
{
    const struct ss_profile_options options = {.method = ss_method_find("2022-blake3-aes-128-gcm"),
                                               .password = view_of(KEY_16 ":" KEY_16B)};
    struct ss_profile *profile;
    struct ss_codec *codec;

    (void)state;
    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    codec = codec_of(profile, SS_CODEC_CLIENT);
    ss_codec_end(codec);
    assert_int_equal(ss_codec_begin(codec, profile, SS_CODEC_SERVER), SS_ERR_ARGUMENT);
    free_codec(codec);
    ss_profile_release(profile);
}

static void count_release(void *tag)
{
    ++*(int *)tag;
}

/* Tags live as long as their user, and a user as long as anyone who holds it or a list it is on. */
static void tags_are_let_go_with_the_last_holder(void **state)
{
    int one = 0, both = 0;
    const struct ss_user_options list[] = {
        {.name = "a", .password = view_of(KEY_16), .tag = &one, .release = count_release},
        {.name = "b", .password = view_of(KEY_16B), .tag = &both, .release = count_release}};
    const struct ss_method *method = ss_method_find("2022-blake3-aes-128-gcm");
    struct ss_profile_options options = {.method = method, .password = view_of(KEY_16C)};
    struct ss_key_fault fault;
    struct ss_profile *profile;
    struct ss_users *first, *second;
    const struct ss_user *session;

    (void)state;
    assert_int_equal(ss_users_new(&first, method, list, 2, &fault), SS_OK);
    options.users = first;
    assert_int_equal(ss_profile_new(&profile, &options), SS_OK);
    session = ss_users_get(first, 0);
    ss_user_hold(session);
    assert_int_equal(ss_users_change(&second, first, method, NULL, "a", &fault), SS_OK);
    assert_int_equal(ss_users_count(second), 1);
    assert_ptr_equal(ss_users_get(second, 0), ss_users_get(first, 1));
    ss_users_release(first);
    ss_profile_hold(profile);
    ss_profile_set_users(profile, second);
    ss_users_release(second);
    assert_int_equal(one, 0); /* the session has it still */
    assert_string_equal(session->name, "a");
    ss_user_release(session);
    assert_int_equal(one, 1);
    ss_profile_release(profile);
    assert_int_equal(both, 0);
    ss_profile_release(profile);
    assert_int_equal(both, 1); /* once, however many lists there were */
}

static bool is_on(const struct ss_users *users, const char *password)
{
    const struct ss_user_options list = {.name = "x", .password = view_of(password)};
    struct ss_key_fault fault;
    struct ss_users *other;
    bool found;

    assert_int_equal(
        ss_users_new(&other, ss_method_find("2022-blake3-aes-128-gcm"), &list, 1, &fault), SS_OK);
    found = ss_users_same(users, ss_users_get(other, 0)) != NULL;
    ss_users_release(other);
    return found;
}

/* One user comes, changes or goes, the others stay the same objects in their order. */
static void a_list_is_changed_by_one(void **state)
{
    const struct ss_endpoint next = {.host = "192.0.2.1", .port = 1};
    const struct ss_method *method = ss_method_find("2022-blake3-aes-128-gcm");
    const struct ss_user_options list[] = {{.name = "a", .password = view_of(KEY_16)},
                                           {.name = "b", .password = view_of(KEY_16B)}};
    struct ss_user_options put = {.name = "a", .password = view_of(KEY_16C), .next = &next};
    struct ss_users *users, *changed;
    struct ss_key_fault fault;

    (void)state;
    assert_int_equal(ss_users_new(&users, method, list, 2, &fault), SS_OK);
    assert_int_equal(ss_users_change(&changed, users, method, &put, NULL, &fault), SS_OK);
    assert_int_equal(ss_users_count(changed), 2);
    assert_string_equal(ss_users_get(changed, 0)->name, "a");
    assert_int_equal(ss_users_get(changed, 0)->next->port, 1);
    assert_ptr_equal(ss_users_get(changed, 1), ss_users_get(users, 1));
    assert_true(is_on(changed, KEY_16C) && !is_on(changed, KEY_16) && is_on(users, KEY_16));
    ss_users_release(users);

    put = (struct ss_user_options){.name = "c", .password = view_of(KEY_16)};
    assert_int_equal(ss_users_change(&users, changed, method, &put, NULL, &fault), SS_OK);
    assert_int_equal(ss_users_count(users), 3);
    assert_string_equal(ss_users_get(users, 2)->name, "c");
    ss_users_release(changed);

    /* Another's key, before and behind; and no key. */
    put.password = view_of(KEY_16B);
    assert_int_equal(ss_users_change(&changed, users, method, &put, NULL, &fault), SS_ERR_KEY);
    assert_true(fault.kind == SS_KEY_IS_DOUBLE && fault.user == 2);
    put.name = "a";
    assert_int_equal(ss_users_change(&changed, users, method, &put, NULL, &fault), SS_ERR_KEY);
    assert_true(fault.kind == SS_KEY_IS_DOUBLE && fault.user == 0);
    put.password = view_of("?");
    assert_int_equal(ss_users_change(&changed, users, method, &put, NULL, &fault), SS_ERR_KEY);
    assert_true(fault.kind == SS_KEY_NOT_BASE64 && fault.user == 0);
    assert_null(changed);

    assert_int_equal(ss_users_change(&changed, users, method, NULL, "nobody", &fault), SS_OK);
    assert_int_equal(ss_users_count(changed), 3);
    ss_users_release(changed);
    assert_int_equal(ss_users_change(&changed, users, method, NULL, "b", &fault), SS_OK);
    assert_int_equal(ss_users_count(changed), 2);
    assert_false(is_on(changed, KEY_16B));
    ss_users_release(users);
    ss_users_release(changed);
}

int users_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_in_either_alphabet_padded_or_not),
        cmocka_unit_test(chains_of_keys),
        cmocka_unit_test(a_wrong_key_is_described_in_numbers),
        cmocka_unit_test(a_raw_key_has_exactly_the_length),
        cmocka_unit_test(a_bad_list_says_whose_key_it_is),
        cmocka_unit_test(a_server_with_users_has_one_key_of_an_aes_method),
        cmocka_unit_test(a_server_takes_no_chain),
        cmocka_unit_test(tags_are_let_go_with_the_last_holder),
        cmocka_unit_test(a_list_is_changed_by_one),
    };

    return cmocka_run_group_tests_name("codec/keys and users", tests, NULL, NULL);
}
