/* The command line: forms, abbreviations, precedence, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reading.h"

#define L SS_PROGRAM_LOCAL
#define S SS_PROGRAM_SERVER
#define T SS_PROGRAM_TUNNEL

#define SERVER "-s 127.0.0.1 -p 8388 -k pw "
#define LOCAL  "-s 127.0.0.1 -p 8388 -l 1080 -k pw "

static struct reading *server(const char *more)
{
    char line[512];

    snprintf(line, sizeof line, SERVER "%s", more);
    return reading_begin(S, line);
}

static void a_complete_line_is_taken(void **state)
{
    struct reading *r = reading_begin(
        L, "-s 192.0.2.1 -p 8388 -l 1080 -k pw -m aes-256-gcm -t 300 -b 127.0.0.2 -v -6 -n 4096 "
           "-a nobody -f p.pid -i eth0 --workers 2 --tcp-idle-timeout=9 --half-open-timeout 8 "
           "--handshake-timeout 7 --max-connections 100 --log-level warn --salt-memory 2000");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.server_count, 1);
    assert_string_equal(r->config.servers[0].addresses[0].host, "192.0.2.1");
    assert_int_equal(r->config.servers[0].addresses[0].port, 8388);
    assert_string_equal(r->config.servers[0].password, "pw");
    assert_string_equal(r->config.servers[0].method, "aes-256-gcm");
    assert_int_equal(r->config.local_count, 1);
    assert_string_equal(r->config.locals[0].address, "127.0.0.2");
    assert_int_equal(r->config.locals[0].port, 1080);
    assert_int_equal(r->config.timeout_s, 300);
    assert_true(r->config.verbose);
    assert_true(r->config.ipv6_first);
    assert_int_equal(r->config.nofile, 4096);
    assert_string_equal(r->config.user, "nobody");
    assert_string_equal(r->config.pid_file, "p.pid");
    assert_string_equal(r->config.interface, "eth0");
    assert_int_equal(r->config.workers, 2);
    assert_int_equal(r->config.tcp_idle_timeout_s, 9);
    assert_int_equal(r->config.half_open_timeout_s, 8);
    assert_int_equal(r->config.handshake_timeout_s, 7);
    assert_int_equal(r->config.max_connections, 100);
    assert_int_equal(r->config.log_level, SS_LOG_WARN);
    assert_int_equal(r->config.salt_memory, 2000);
    reading_end(r);
}

static void what_is_not_given_has_its_default(void **state)
{
    struct reading *r = reading_begin(S, "-p 8388 -k pw");
    (void)state;

    assert_true(r->good);
    assert_string_equal(r->config.servers[0].addresses[0].host, "0.0.0.0");
    assert_string_equal(r->config.servers[0].method, "chacha20-ietf-poly1305");
    assert_int_equal(r->config.servers[0].mode, SS_MODE_TCP_ONLY);
    assert_int_equal(r->config.timeout_s, 60);
    assert_int_equal(r->config.tcp_idle_timeout_s, 86400);
    assert_int_equal(r->config.half_open_timeout_s, 300);
    assert_int_equal(r->config.keep_alive_s, 40);
    assert_false(r->config.ipv6_only);
    assert_int_equal(r->config.handshake_timeout_s, 60);
    assert_int_equal(r->config.salt_memory, 1000000);
    assert_int_equal(r->config.log_level, SS_LOG_INFO);
    reading_end(r);

    r = reading_begin(L, LOCAL);
    assert_int_equal(r->config.salt_memory, 10000);
    assert_null(r->config.locals[0].address);
    reading_end(r);
}

static void short_options_may_be_bundled_and_glued(void **state)
{
    struct reading *r = reading_begin(L, "-s127.0.0.1 -p8388 -kpw -maes-128-gcm -uvl1081 -b::1");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.locals[0].port, 1081);
    assert_int_equal(r->config.locals[0].mode, SS_MODE_TCP_AND_UDP);
    assert_string_equal(r->config.servers[0].method, "aes-128-gcm");
    assert_string_equal(r->config.locals[0].address, "::1");
    assert_int_equal(r->config.log_level, SS_LOG_DEBUG);
    reading_end(r);

    r = reading_begin(S, "-s 127.0.0.1 -k -secret -up8389");
    assert_true(r->good);
    assert_string_equal(r->config.servers[0].password, "-secret");
    assert_int_equal(r->config.servers[0].addresses[0].port, 8389);
    reading_end(r);
}

static void a_prefix_unique_among_the_classic_options_means_that(void **state)
{
    struct reading *r = reading_begin(
        S,
        "-p 8388 --pa=pw --fast --no-d --re --mt 1400 --mp --k AAAA --manager 127.0.0.1:1 --ac a");
    (void)state;

    assert_true(r->good);
    assert_true(r->config.fast_open && r->config.no_delay && r->config.reuse_port);
    assert_true(r->config.mptcp);
    assert_int_equal(r->config.mtu, 1400);
    assert_string_equal(r->config.servers[0].key, "AAAA");
    assert_string_equal(r->config.password, "pw");
    assert_string_equal(r->config.manager_address, "127.0.0.1:1");
    assert_string_equal(r->config.acl, "a");
    reading_end(r);

    r = server("--work 3 --hand 9");
    assert_true(r->good);
    assert_int_equal(r->config.workers, 3);
    assert_int_equal(r->config.handshake_timeout_s, 9);
    reading_end(r);
}

static void what_is_no_option_is_named_and_usage_follows(void **state)
{
    static const struct {
        const char *words, *named;
    } cases[] = {
        {"-x", "-x"},
        {"-uxv", "-x"},
        {"--nosuch", "--nosuch"},
        {"--nosuch=3", "--nosuch"},
        {"--plu x", "--plu"},
        {"--m 5", "--m"},
        {"--p 5", "--p"},
        {"--fast-open=1", "--fast-open"},
        {"--mtu", "--mtu"},
        {"-p", "-p"},
        {"--server-port 1", "--server-port"},
        {"-T", "-T"},
        {"-L 1.2.3.4:5", "-L"},
        {"--h", "--h"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[64];
        struct reading *r = server(cases[i].words);

        snprintf(line, sizeof line, "Unrecognized option: %s", cases[i].named);
        if (strcmp(cases[i].words, "--h") != 0) {
            assert_false(r->good);
            assert_int_equal(r->exit_code, 1);
            assert_int_equal(reading_count(r, "ERROR", line), 1);
        } else {
            assert_int_equal(r->exit_code, 0); /* --help is the one classic option with it */
        }
        reading_end(r);
    }
}

static void a_value_behind_an_unknown_option_is_not_shown(void **state)
{
    struct reading *r = server("--pasword=hunter2");
    (void)state;

    assert_int_equal(reading_count(r, "ERROR", "hunter2"), 0);
    reading_end(r);
}

static void help_ends_with_0_wherever_it_stands(void **state)
{
    static const char *const lines[] = {"-h", "--help", "--he", SERVER "-h", "-h -x", "-x -h"};
    (void)state;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct reading *r = reading_begin(S, lines[i]);

        assert_false(r->good);
        assert_int_equal(r->exit_code, 0);
        reading_end(r);
    }
}

static void one_time_authentication_is_fatal(void **state)
{
    struct reading *r = server("-A");
    (void)state;

    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "One time auth has been deprecated"), 1);
    reading_end(r);
}

static void words_that_are_no_options_have_no_meaning(void **state)
{
    struct reading *r = server("extra - words -- -x --nosuch");
    (void)state;

    assert_true(r->good);
    reading_end(r);

    setenv("POSIXLY_CORRECT", "1", 1);
    r = server("extra -u");
    unsetenv("POSIXLY_CORRECT");
    assert_true(r->good);
    assert_int_equal(r->config.mode, SS_MODE_TCP_ONLY);
    reading_end(r);
}

static void of_a_repeated_value_the_last_counts(void **state)
{
    struct reading *r = server("-p 8390 -m aes-192-gcm -m aes-128-gcm -u -U");
    (void)state;

    assert_int_equal(r->config.server_port, 8390);
    assert_string_equal(r->config.method, "aes-128-gcm");
    assert_int_equal(r->config.mode, SS_MODE_UDP_ONLY);
    reading_end(r);

    r = server("-U -u");
    assert_int_equal(r->config.mode, SS_MODE_TCP_AND_UDP);
    reading_end(r);
}

static void at_most_ten_servers_are_used(void **state)
{
    struct reading *r = reading_begin(
        S, "-p 8388 -k pw -s 127.0.0.1 -s 127.0.0.2 -s 127.0.0.3 -s 127.0.0.4 -s 127.0.0.5 "
           "-s 127.0.0.6 -s 127.0.0.7 -s 127.0.0.8:9 -s [::1]:10 -s ::1 -s 127.0.0.11");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.servers[0].address_count, 10);
    assert_int_equal(r->config.servers[0].addresses[7].port, 9);
    assert_int_equal(r->config.servers[0].addresses[8].port, 10);
    assert_string_equal(r->config.servers[0].addresses[8].host, "::1");
    assert_int_equal(r->config.servers[0].addresses[9].port, 8388);
    assert_int_equal(reading_count(r, "WARN", "127.0.0.11"), 1);
    reading_end(r);
}

static void what_is_missing_is_said_as_it_always_was(void **state)
{
    static const struct {
        enum ss_program program;
        const char *line;
        int exit_code;
    } cases[] = {
        {S, "-s 127.0.0.1 -k pw", 1},
        {S, "-s 127.0.0.1 -p 8388", 1},
        {S, "-v", 1},
        {L, "-p 8388 -l 1080 -k pw", 1},
        {L, "-s 127.0.0.1 -l 1080 -k pw", 1},
        {L, "-s 127.0.0.1:8388 -l 1080 -k pw", 1},
        {L, "-s 127.0.0.1 -p 8388 -k pw", 1},
        {L, "-s 127.0.0.1 -p 8388 -l 1080", 1},
        {T, "-s 127.0.0.1 -p 8388 -l 1080 -k pw", 1},
        {T, "-s 127.0.0.1 -p 8388 -l 1080 -k pw -L 127.0.0.1", 255},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading *r = reading_begin(cases[i].program, cases[i].line);

        assert_false(r->good);
        assert_int_equal(r->exit_code, cases[i].exit_code);
        reading_end(r);
    }
}

static void an_empty_password_is_one(void **state)
{
    struct reading *r = reading_begin(S, "-p 8388 --password=");
    (void)state;

    assert_true(r->good);
    assert_string_equal(r->config.servers[0].password, "");
    reading_end(r);
}

static void numbers_out_of_bounds_are_refused_by_name(void **state)
{
    static const struct {
        const char *words, *named;
    } cases[] = {
        {"-p 0", "-p"},
        {"-p 65536", "-p"},
        {"-p -1", "-p"},
        {"-p 8388abc", "-p"},
        {"-p abc", "-p"},
        {"-t x", "-t"},
        {"-t -5", "-t"},
        {"--workers 0", "-workers"},
        {"--workers 65", "--workers"},
        {"--log-level loud", "log_level"},
        {"--max-connections 0", "--max"},
        {"--tcp-idle-timeout 1s", "--tcp-idle-timeout"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading *r = server(cases[i].words);

        assert_false(r->good);
        assert_int_equal(r->exit_code, 255);
        assert_int_equal(reading_count(r, "ERROR", cases[i].named), 1);
        reading_end(r);
    }
}

static void descriptors_of_1024_and_less_are_left_alone(void **state)
{
    static const char *const words[] = {"-n 1024", "-n 0", "-n -5", "-n junk"};
    (void)state;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct reading *r = server(words[i]);

        assert_true(r->good);
        assert_int_equal(r->config.nofile, 0);
        reading_end(r);
    }
}

static void options_that_are_taken_and_ignored(void **state)
{
    struct reading *r = server("-l 1080");
    (void)state;

    assert_true(r->good);
    assert_int_equal(r->config.local_count, 0);
    reading_end(r);
    r = server("-l x");
    assert_true(r->good);
    reading_end(r);
}

static void secrets_do_not_stay_in_the_list_of_processes(void **state)
{
    char words[8][64] = {"program", "-p",      "8388", "-khunter2",
                         "--key",   "AAECAwQ", "-s",   "127.0.0.1"};
    char *argv[8];
    struct reading *r;
    (void)state;

    for (int i = 0; i < 8; i++)
        argv[i] = words[i];
    r = reading_words(S, 8, argv);
    assert_true(r->good);
    assert_string_equal(r->config.password, "hunter2");
    assert_string_equal(argv[3], "-k*");
    for (size_t i = 4; i < sizeof words[3]; i++)
        assert_int_equal(words[3][i], '\0');
    assert_string_equal(argv[5], "*");
    assert_string_equal(argv[7], "127.0.0.1");
    reading_end(r);
}

/* As a system hands them over, one behind the other, and with the environment behind them. */
static void a_secret_leaves_no_gap_of_its_length(void **state)
{
    static const char *const given[] = {"program", "-p",         "8388", "-khunter2", "--key",
                                        "AAECAwQ", "--key=AAEC", "-s",   "127.0.0.1"};
    static const char shown[] = "program\0-p\0008388\0-k*\0--key\0*\0--key=*\0-s\000127.0.0.1";
    char block[128], *argv[9], *at = block;
    size_t used;
    struct reading *r;
    (void)state;

    for (int i = 0; i < 9; i++) {
        argv[i] = at;
        at += strlen(strcpy(at, given[i])) + 1;
    }
    used = (size_t)(at - block);
    strcpy(at, "HOME=/");
    r = reading_words(S, 9, argv);
    assert_true(r->good);
    assert_string_equal(r->config.password, "hunter2");
    assert_string_equal(r->config.key, "AAEC");
    assert_memory_equal(block, shown, sizeof shown);
    for (size_t i = sizeof shown; i < used; i++)
        assert_int_equal(block[i], '\0');
    assert_string_equal(at, "HOME=/");
    assert_ptr_equal(argv[0], block);
    assert_string_equal(argv[3], "-k*");
    assert_string_equal(argv[8], "127.0.0.1");
    reading_end(r);
}

static void options_say_their_line_where_the_classic_does(void **state)
{
    struct reading *r = server("--no-delay --mtu 1400 --mptcp --mtu junk");
    (void)state;

    assert_int_equal(reading_count(r, "INFO", "enable TCP no-delay"), 1);
    assert_int_equal(reading_count(r, "INFO", "set MTU to 1400"), 1);
    assert_int_equal(reading_count(r, "INFO", "set MTU to 0"), 1);
    assert_int_equal(reading_count(r, "INFO", "enable multipath TCP (upstream)"), 1);
    reading_end(r);
    r = server("--no-delay --check-config");
    assert_int_equal(reading_count(r, "INFO", ""), 0);
    assert_int_equal(r->config.task, SS_TASK_CHECK_CONFIG);
    reading_end(r);
}

static void the_line_beats_the_file(void **state)
{
    static const char file[] =
        "{\"server\":[\"127.0.0.1\",\"127.0.0.9\"],\"server_port\":8388,\"local_port\":1080,"
        "\"password\":\"file\",\"method\":\"aes-128-gcm\",\"mode\":\"udp_only\","
        "\"local_address\":\"127.0.0.3\",\"fast_open\":false,\"mtu\":1300,\"nofile\":2000,"
        "\"timeout\":30,\"workers\":2,\"log_level\":\"error\"}";
    struct reading *r;
    (void)state;

    reading_file(file);
    r = reading_begin(L, "-p 8389 -c c.json -l 1081 -k line -s 127.0.0.2 -m aes-256-gcm -u -b "
                         "127.0.0.4 --fast-open --mtu 1400 -n 4096 -t 20 --workers 1");
    assert_true(r->good);
    assert_int_equal(r->config.servers[0].address_count, 1);
    assert_string_equal(r->config.servers[0].addresses[0].host, "127.0.0.2");
    assert_int_equal(r->config.servers[0].addresses[0].port, 8389);
    assert_string_equal(r->config.servers[0].password, "line");
    assert_string_equal(r->config.servers[0].method, "aes-256-gcm");
    assert_int_equal(r->config.locals[0].port, 1081);
    assert_string_equal(r->config.locals[0].address, "127.0.0.4");
    assert_int_equal(r->config.locals[0].mode, SS_MODE_TCP_AND_UDP);
    assert_true(r->config.fast_open);
    assert_int_equal(r->config.mtu, 1400);
    assert_int_equal(r->config.nofile, 4096);
    assert_int_equal(r->config.timeout_s, 20);
    assert_int_equal(r->config.workers, 1);
    assert_int_equal(r->config.log_level, SS_LOG_ERROR);
    reading_end(r);

    r = reading_begin(L, "-c c.json --mtu 0 -n 0 -v");
    assert_int_equal(r->config.mtu, 1300);
    assert_int_equal(r->config.nofile, 2000);
    assert_int_equal(r->config.servers[0].address_count, 2);
    assert_int_equal(r->config.locals[0].mode, SS_MODE_UDP_ONLY);
    assert_int_equal(r->config.log_level, SS_LOG_DEBUG);
    reading_end(r);
}

static void without_arguments_a_default_file_is_read(void **state)
{
    struct reading *r;
    (void)state;

    reading_file("{\"server_port\":8388,\"password\":\"x\"}");
    setenv("XDG_CONFIG_HOME", "/xdg", 1);
    r = reading_begin(S, "");
    assert_true(r->good);
    assert_string_equal(r->config.config_path, "/xdg/shadowsocks-libev/config.json");
    reading_end(r);
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/home/x", 1);
    r = reading_begin(S, "");
    assert_string_equal(r->config.config_path, "/home/x/.config/shadowsocks-libev/config.json");
    reading_end(r);
    unsetenv("HOME");
    r = reading_begin(S, "");
    assert_string_equal(r->config.config_path, "/etc/shadowsocks-libev/config.json");
    reading_end(r);

    reading_file(NULL);
    r = reading_begin(S, "");
    assert_false(r->good);
    assert_int_equal(r->exit_code, 255);
    assert_int_equal(reading_count(r, "ERROR", "Invalid config path."), 1);
    reading_end(r);
}

static void a_password_may_come_from_the_environment(void **state)
{
    struct reading *r;
    (void)state;

    setenv("SS_SERVER_PASSWORD", "env", 1);
    r = reading_begin(S, "-p 8388");
    assert_true(r->good);
    assert_string_equal(r->config.servers[0].password, "env");
    reading_end(r);
    r = reading_begin(S, "-p 8388 -k line");
    assert_string_equal(r->config.servers[0].password, "line");
    reading_end(r);
    r = reading_begin(S, "-p 8388 --key AAAA");
    assert_null(r->config.servers[0].password);
    reading_end(r);
    unsetenv("SS_SERVER_PASSWORD");
}

static void source_addresses_are_one_a_family(void **state)
{
    struct reading *r = server("-b 192.0.2.9 -b 2001:db8::9 -b name.test");
    char text[SS_IP_TEXT_MAX];
    (void)state;

    assert_true(r->good);
    assert_string_equal(ss_ip_format(&r->config.bind_ipv4, text), "192.0.2.9");
    assert_string_equal(ss_ip_format(&r->config.bind_ipv6, text), "2001:db8::9");
    assert_int_equal(reading_count(r, "WARN", "name.test"), 1);
    reading_end(r);
}

int args_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_complete_line_is_taken),
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(short_options_may_be_bundled_and_glued),
        cmocka_unit_test(a_prefix_unique_among_the_classic_options_means_that),
        cmocka_unit_test(what_is_no_option_is_named_and_usage_follows),
        cmocka_unit_test(a_value_behind_an_unknown_option_is_not_shown),
        cmocka_unit_test(help_ends_with_0_wherever_it_stands),
        cmocka_unit_test(one_time_authentication_is_fatal),
        cmocka_unit_test(words_that_are_no_options_have_no_meaning),
        cmocka_unit_test(of_a_repeated_value_the_last_counts),
        cmocka_unit_test(at_most_ten_servers_are_used),
        cmocka_unit_test(what_is_missing_is_said_as_it_always_was),
        cmocka_unit_test(an_empty_password_is_one),
        cmocka_unit_test(numbers_out_of_bounds_are_refused_by_name),
        cmocka_unit_test(descriptors_of_1024_and_less_are_left_alone),
        cmocka_unit_test(options_that_are_taken_and_ignored),
        cmocka_unit_test(a_secret_leaves_no_gap_of_its_length),
        cmocka_unit_test(secrets_do_not_stay_in_the_list_of_processes),
        cmocka_unit_test(options_say_their_line_where_the_classic_does),
        cmocka_unit_test(the_line_beats_the_file),
        cmocka_unit_test(without_arguments_a_default_file_is_read),
        cmocka_unit_test(a_password_may_come_from_the_environment),
        cmocka_unit_test(source_addresses_are_one_a_family),
    };

    return cmocka_run_group_tests_name("config: command line", tests, NULL, NULL);
}
