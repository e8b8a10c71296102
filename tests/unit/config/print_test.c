/* --check-config and --print-url. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "reading.h"

static char *print(const struct ss_config *config)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    ss_config_print(config, out);
    fclose(out);
    return text;
}

static json_t *effective(struct reading *r)
{
    char *text = print(&r->config);
    json_t *object = json_loads(text, 0, NULL);

    assert_non_null(object);
    free(text);
    return object;
}

static void secrets_are_hidden(void **state)
{
    struct reading *r =
        reading_begin(SS_PROGRAM_SERVER, "-p 8388 -k hunter2 --key AAECAwQ --check-config");
    char *text;
    (void)state;

    assert_true(r->good);
    text = print(&r->config);
    assert_null(strstr(text, "hunter2"));
    assert_null(strstr(text, "AAECAwQ"));
    assert_non_null(strstr(text, "\"password\": \"***\""));
    free(text);
    reading_end(r);

    /* Plugins have passwords too. */
    r = reading_begin(SS_PROGRAM_LOCAL, "-s 192.0.2.1 -p 1 -l 2 -k x --plugin p --plugin-opts "
                                        "pw=hunter2 --check-config");
    assert_true(r->good);
    assert_string_equal(r->config.servers[0].plugin_opts, "pw=hunter2");
    text = print(&r->config);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "\"plugin_opts\": \"***\""));
    free(text);
    reading_end(r);
}

/* The same setting from the line and from a file comes to the same. */
static void line_and_file_come_to_the_same(void **state)
{
    static const struct {
        const char *words, *member;
    } cases[] = {
        {"-m aes-128-gcm", "\"method\":\"aes-128-gcm\""},
        {"-u", "\"mode\":\"tcp_and_udp\""},
        {"-U", "\"mode\":\"udp_only\""},
        {"-t 30", "\"timeout\":30"},
        {"-6", "\"ipv6_first\":true"},
        {"-i eth0", "\"outbound_bind_interface\":\"eth0\""},
        {"-b 127.0.0.9", "\"local_address\":\"127.0.0.9\""},
        {"-n 4096", "\"nofile\":4096"},
        {"-a nobody", "\"user\":\"nobody\""},
        {"--fast-open", "\"fast_open\":true"},
        {"--mptcp", "\"mptcp\":true"},
        {"--no-delay", "\"no_delay\":true"},
        {"--reuse-port", "\"reuse_port\":true"},
        {"--mtu 1400", "\"mtu\":1400"},
        {"--tcp-incoming-sndbuf 65536", "\"tcp_incoming_sndbuf\":65536"},
        {"--tcp-incoming-rcvbuf 65536", "\"tcp_incoming_rcvbuf\":65536"},
        {"--tcp-outgoing-sndbuf 65536", "\"tcp_outgoing_sndbuf\":65536"},
        {"--tcp-outgoing-rcvbuf 65536", "\"tcp_outgoing_rcvbuf\":65536"},
        {"--plugin p --plugin-opts a=b", "\"plugin\":\"p\",\"plugin_opts\":\"a=b\""},
        {"--outbound-bind-addr 192.0.2.9", "\"outbound_bind_addr\":\"192.0.2.9\""},
        {"--workers 3", "\"workers\":3"},
        {"--max-connections 99", "\"max_connections\":99"},
        {"--handshake-timeout 9", "\"handshake_timeout\":9"},
        {"--tcp-idle-timeout 9", "\"tcp_idle_timeout\":9"},
        {"--keep-alive 9", "\"keep_alive\":9"},
        {"--ipv6-only", "\"ipv6_only\":true"},
        {"--half-open-timeout 9", "\"half_open_timeout\":9"},
        {"--salt-memory 5000", "\"salt_memory\":5000"},
        {"--log-level debug", "\"log_level\":\"debug\""},
    };
    static const char base[] = "\"server\":\"127.0.0.1\",\"server_port\":8388,\"local_port\":1080,"
                               "\"password\":\"x\",\"tunnel_address\":\"127.0.0.1:53\"";
    static const enum ss_program programs[] = {SS_PROGRAM_LOCAL, SS_PROGRAM_SERVER,
                                               SS_PROGRAM_TUNNEL};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t p = 0; p < 3; p++) {
            char file[512], line[128];
            struct reading *by_line, *by_file;
            json_t *one, *other;

            if (strcmp(cases[i].words, "-6") == 0 && programs[p] == SS_PROGRAM_TUNNEL)
                continue; /* ss-tunnel has never read that key */
            snprintf(file, sizeof file, "{%s}", base);
            snprintf(line, sizeof line, "-c c.json %s", cases[i].words);
            reading_file(file);
            by_line = reading_begin(programs[p], line);
            snprintf(file, sizeof file, "{%s,%s}", base, cases[i].member);
            by_file = reading_begin(programs[p], "-c c.json");
            reading_file(file);
            reading_end(by_file);
            by_file = reading_begin(programs[p], "-c c.json");

            assert_true(by_line->good && by_file->good);
            one = effective(by_line);
            other = effective(by_file);
            if (!json_equal(one, other))
                fail_msg("%s and %s differ", cases[i].words, cases[i].member);
            json_decref(one);
            json_decref(other);
            reading_end(by_line);
            reading_end(by_file);
        }
    }
}

static void what_is_printed_can_be_read_again(void **state)
{
    struct reading *r = reading_begin(
        SS_PROGRAM_LOCAL, "-s 192.0.2.1 -s [::1]:9 -p 8388 -l 1080 -k x --workers 2 -t 9");
    char *text;
    struct reading *again;
    json_t *one, *other;
    (void)state;

    text = print(&r->config);
    one = effective(r);
    reading_file(text);
    again = reading_begin(SS_PROGRAM_LOCAL, "-c c.json");
    assert_true(again->good);
    other = effective(again);
    assert_true(json_equal(json_object_get(one, "servers"), json_object_get(other, "servers")));
    assert_true(json_equal(json_object_get(one, "timeout"), json_object_get(other, "timeout")));
    json_decref(one);
    json_decref(other);
    reading_end(again);
    reading_end(r);
    free(text);
}

static void a_url_for_each_address(void **state)
{
    struct reading *r = reading_begin(
        SS_PROGRAM_SERVER, "-s 192.0.2.1 -s ::1 -p 8388 -m aes-128-gcm -k test --print-url");
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    (void)state;

    assert_non_null(out);
    assert_int_equal(r->config.task, SS_TASK_PRINT_URL);
    assert_true(ss_config_print_url(&r->config, out));
    fclose(out);
    assert_string_equal(text, "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:8388\n"
                              "ss://YWVzLTEyOC1nY206dGVzdA@[::1]:8388\n");
    free(text);
    reading_end(r);
}

static void a_client_needs_no_local_port_for_its_url(void **state)
{
    struct reading *r = reading_begin(SS_PROGRAM_LOCAL, "-s h.test -p 8388 -k test --print-url");
    (void)state;

    assert_true(r->good);
    reading_end(r);
}

int print_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(line_and_file_come_to_the_same),
        cmocka_unit_test(what_is_printed_can_be_read_again),
        cmocka_unit_test(a_url_for_each_address),
        cmocka_unit_test(a_client_needs_no_local_port_for_its_url),
    };

    return cmocka_run_group_tests_name("config: printing", tests, NULL, NULL);
}
