/* The hosts file: what is taken from its lines, and when it is read again. */
#include "resolver/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "resolver/hosts_file.h"
#include "unit/resolver/fixture.h"

static void assert_found(const struct ss_hosts *hosts, const char *name, const char *list)
{
    struct ss_ip ips[4];
    char text[4 * SS_IP_TEXT_MAX] = "", ip[SS_IP_TEXT_MAX];
    const size_t count = ss_hosts_find(hosts, name, ips, 4);

    for (size_t i = 0; i < count; i++) {
        strcat(text, i != 0 ? " " : "");
        strcat(text, ss_ip_format(&ips[i], ip));
    }
    assert_string_equal(text, list);
}

static void parse(struct ss_hosts *hosts, const char *text)
{
    assert_int_equal(ss_hosts_parse(hosts, text, strlen(text)), SS_OK);
}

static void names_are_found_in_the_order_of_the_file(void **state)
{
    struct ss_hosts hosts = {0};
    (void)state;

    parse(&hosts, "192.0.2.1 one alias ONE.example.\n"
                  "2001:db8::1\tone\r\n"
                  "192.0.2.2 two one\n"
                  "192.0.2.1 one\n");
    assert_found(&hosts, "one", "192.0.2.1 2001:db8::1 192.0.2.2");
    assert_found(&hosts, "alias", "192.0.2.1");
    assert_found(&hosts, "one.example", "192.0.2.1");
    assert_found(&hosts, "two", "192.0.2.2");
    assert_found(&hosts, "three", "");
    assert_found(&hosts, "on", "");
    assert_found(&hosts, "", "");
    ss_hosts_clear(&hosts);
    assert_found(&hosts, "one", "");
}

static void no_more_is_copied_than_there_is_room_for(void **state)
{
    struct ss_hosts hosts = {0};
    struct ss_ip ips[2];
    (void)state;

    parse(&hosts, "192.0.2.1 a\n192.0.2.2 a\n192.0.2.3 a\n");
    assert_int_equal(ss_hosts_find(&hosts, "a", ips, 2), 2);
    assert_int_equal(ips[1].bytes[3], 2);
    ss_hosts_clear(&hosts);
}

static void what_is_no_entry_is_skipped(void **state)
{
    static const char text[] = "# 192.0.2.1 comment\n"
                               "\n"
                               "   \t \n"
                               "192.0.2.2 # no name\n"
                               "192.0.2.3 a#b c\n"
                               "192.0.2.999 bad\n"
                               "name 192.0.2.4\n"
                               "192.0.2.5\n"
                               "  192.0.2.6 in\\dented good..bad -\n"
                               "192.0.2.7 nul\0name after\n"
                               "192.0.2.8\0 x\n"
                               "192.0.2.9 last";
    struct ss_hosts hosts = {0};
    (void)state;

    assert_int_equal(ss_hosts_parse(&hosts, text, sizeof text - 1), SS_OK);
    assert_found(&hosts, "comment", "");
    assert_found(&hosts, "a", "192.0.2.3");
    assert_found(&hosts, "c", "");
    assert_found(&hosts, "bad", "");
    assert_found(&hosts, "good..bad", "");
    assert_found(&hosts, "192.0.2.4", "");
    assert_found(&hosts, "nul", "");
    assert_found(&hosts, "after", "192.0.2.7");
    assert_found(&hosts, "x", "");
    assert_found(&hosts, "last", "192.0.2.9");
    ss_hosts_clear(&hosts);
}

static void over_long_pieces_are_skipped(void **state)
{
    struct ss_hosts hosts = {0};
    char text[2048];
    (void)state;

    memset(text, '1', sizeof text); /* an address without an end */
    text[sizeof text - 3] = ' ';
    assert_int_equal(ss_hosts_parse(&hosts, text, sizeof text), SS_OK);
    assert_int_equal(hosts.count, 0);

    memset(text, 'n', sizeof text); /* a name without an end */
    memcpy(text, "192.0.2.1 ", 10);
    memcpy(text + sizeof text - 3, " ok", 3);
    assert_int_equal(ss_hosts_parse(&hosts, text, sizeof text), SS_OK);
    assert_found(&hosts, "ok", "192.0.2.1");
    assert_int_equal(hosts.count, 1);

    assert_int_equal(ss_hosts_parse(&hosts, text, SS_HOSTS_TEXT_MAX + 1), SS_ERR_FORMAT);
    assert_found(&hosts, "ok", "192.0.2.1"); /* as before */
    ss_hosts_clear(&hosts);
}

static void many_names_are_all_found(void **state)
{
    struct ss_hosts hosts = {0};
    const size_t lines = 20000, cap = lines * 40;
    char *text = malloc(cap), name[32], ip[32];
    size_t len = 0;
    (void)state;

    assert_non_null(text);
    for (size_t i = 0; i < lines; i++)
        len += (size_t)snprintf(text + len, cap - len, "10.0.%zu.%zu n%zu\n", i / 256, i % 256, i);
    assert_int_equal(ss_hosts_parse(&hosts, text, len), SS_OK);
    for (size_t i = 0; i < lines; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        snprintf(ip, sizeof ip, "10.0.%zu.%zu", i / 256, i % 256);
        assert_found(&hosts, name, ip);
    }
    ss_hosts_clear(&hosts);
    free(text);
}

static void a_changed_file_is_read_again_within_a_second(void **state)
{
    struct fixture *f = *state;
    struct ss_hosts_file file;

    fixture_write_hosts(f, "192.0.2.1 name\n");
    ss_hosts_file_init(&file, f->hosts_path);
    ss_hosts_file_check(&file, 5000);
    assert_found(&file.hosts, "name", "192.0.2.1");

    fixture_write_hosts(f, "192.0.2.22 name\n");
    ss_hosts_file_check(&file, 5999);
    assert_found(&file.hosts, "name", "192.0.2.1");
    ss_hosts_file_check(&file, 6000);
    assert_found(&file.hosts, "name", "192.0.2.22");
    ss_hosts_file_clear(&file);
}

static void an_unchanged_file_is_not_read_again(void **state)
{
    struct fixture *f = *state;
    struct ss_hosts_file file;
    const struct ss_hosts_entry *entries;

    fixture_write_hosts(f, "192.0.2.1 name\n");
    ss_hosts_file_init(&file, f->hosts_path);
    ss_hosts_file_check(&file, 0);
    entries = file.hosts.entries;
    for (uint64_t now_ms = 1000; now_ms < 10000; now_ms += 1000)
        ss_hosts_file_check(&file, now_ms);
    assert_ptr_equal(file.hosts.entries, entries);
    ss_hosts_file_clear(&file);
}

static void a_file_that_goes_takes_its_names_along(void **state)
{
    struct fixture *f = *state;
    struct ss_hosts_file file;

    fixture_write_hosts(f, "192.0.2.1 name\n");
    ss_hosts_file_init(&file, f->hosts_path);
    ss_hosts_file_check(&file, 0);
    assert_found(&file.hosts, "name", "192.0.2.1");
    unlink(f->hosts_path);
    ss_hosts_file_check(&file, 1000);
    assert_found(&file.hosts, "name", "");
    fixture_write_hosts(f, "192.0.2.3 name\n");
    ss_hosts_file_check(&file, 2000);
    assert_found(&file.hosts, "name", "192.0.2.3");
    ss_hosts_file_clear(&file);
}

static void what_is_no_plain_file_is_empty_and_does_not_block(void **state)
{
    struct fixture *f = *state;
    struct ss_hosts_file file;

    ss_hosts_file_init(&file, "/");
    ss_hosts_file_check(&file, 0);
    assert_int_equal(file.hosts.count, 0);
    ss_hosts_file_clear(&file);

    unlink(f->hosts_path);
    assert_int_equal(mkfifo(f->hosts_path, 0600), 0);
    ss_hosts_file_init(&file, f->hosts_path);
    ss_hosts_file_check(&file, 0);
    assert_int_equal(file.hosts.count, 0);
    ss_hosts_file_clear(&file);
}

int hosts_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_in_the_order_of_the_file),
        cmocka_unit_test(no_more_is_copied_than_there_is_room_for),
        cmocka_unit_test(what_is_no_entry_is_skipped),
        cmocka_unit_test(over_long_pieces_are_skipped),
        cmocka_unit_test(many_names_are_all_found),
        TEST(a_changed_file_is_read_again_within_a_second),
        TEST(an_unchanged_file_is_not_read_again),
        TEST(a_file_that_goes_takes_its_names_along),
        TEST(what_is_no_plain_file_is_empty_and_does_not_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
