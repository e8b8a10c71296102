/* The built-in list of local targets. */
#include "acl/acl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool blocked(const struct ss_acl *acl, const char *text)
{
    struct ss_ip ip;

    assert_int_equal(ss_ip_parse(&ip, text), SS_OK);
    return ss_acl_outbound_blocked(acl, &ip, false);
}

static void local_targets_are_refused_and_others_not(void **state)
{
    static const char *const local[] = {
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::7f00:1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "ff02::1",
    };
    static const char *const others[] = {
        "1.1.1.1",     "9.255.255.255", "11.0.0.1",       "100.63.255.255",   "100.128.0.1",
        "172.15.0.1",  "172.32.0.1",    "192.167.0.1",    "192.169.0.1",      "223.255.255.255",
        "2001:db8::1", "2606:4700::1",  "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "64:ff9b::172.32.0.1",
    };
    const struct ss_view text = ss_acl_block_local_text();
    struct ss_acl_scratch *scratch = ss_acl_scratch_new();
    struct ss_acl *acl;
    (void)state;

    assert_int_equal(ss_acl_parse(&acl, &text, 1, 1, NULL, NULL), SS_OK);
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (!blocked(acl, local[i]))
            fail_msg("%s is not refused", local[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (blocked(acl, others[i]))
            fail_msg("%s is refused", others[i]);
    assert_int_equal(ss_acl_outbound_name(acl, scratch, "LOCALHOST.", 10), SS_ACL_REFUSED);
    assert_int_equal(ss_acl_outbound_name(acl, scratch, "::ffff:127.0.0.1", 16), SS_ACL_REFUSED);
    assert_int_equal(ss_acl_outbound_name(acl, scratch, "127.0.0.1", 9), SS_ACL_REFUSED);
    assert_int_equal(ss_acl_outbound_name(acl, scratch, "example.com", 11), SS_ACL_BY_ADDRESS);
    ss_acl_scratch_free(scratch);
    ss_acl_release(acl);
}

/* The file is there to be read, copied and changed; it says the same. */
static void the_example_has_the_same_rules(void **state)
{
    const struct ss_view text = ss_acl_block_local_text();
    FILE *file = fopen(SS_ACL_EXAMPLES "/block-local.acl", "r");
    char line[256], *rules = calloc(1, text.len + sizeof line);
    (void)state;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "# \n")] = '\0';
        if (line[0] == '\0')
            continue;
        strcat(line, "\n");
        assert_true(strlen(rules) + strlen(line) <= text.len);
        strcat(rules, line);
    }
    fclose(file);
    assert_int_equal(strlen(rules), text.len);
    assert_memory_equal(rules, text.ptr, text.len);
    free(rules);
}

int block_local_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_targets_are_refused_and_others_not),
        cmocka_unit_test(the_example_has_the_same_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
