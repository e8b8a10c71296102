/* Which sockets there will be, and what each is for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "crypto/random.h"
#include "service/service_internal.h"

static char words[4096];

static void keep(enum ss_log_level level, const char *text)
{
    size_t used = strlen(words);

    snprintf(words + used, sizeof words - used, "%d:%s\n", (int)level, text);
}

/* A configuration as the programs read it, and the service made of it. */
struct planned {
    struct ss_config config;
    struct ss_shared shared;
    struct ss_service service;
    bool good; /* the plans are made and settled */
};

static const char *file_text;

static enum ss_status read_file(char **text, size_t *len, const char *path, size_t limit)
{
    (void)path;
    (void)limit;
    *len = strlen(file_text);
    *text = malloc(*len + 1);
    if (*text == NULL)
        return SS_ERR_MEMORY;
    memcpy(*text, file_text, *len + 1);
    return SS_OK;
}

static struct planned *plan(enum ss_program program, const char *json)
{
    struct planned *planned = calloc(1, sizeof *planned);
    char *arguments[] = {(char *)(uintptr_t) "program", (char *)(uintptr_t) "-c",
                         (char *)(uintptr_t) "c.json", NULL};
    int exit_code;

    assert_non_null(planned);
    words[0] = '\0';
    file_text = json;
    ss_log_set_sink(keep);
    assert_true(ss_config_read(&planned->config, program, 3, arguments, read_file, &exit_code));
    planned->service.config = &planned->config;
    planned->service.shared = &planned->shared;
    planned->good = ss_service_supports(&planned->config) &&
                    ss_service_make_profiles(&planned->service, NULL) &&
                    ss_service_plans_fit(&planned->config) &&
                    ss_service_make_plans(&planned->service, NULL);
    if (planned->good)
        ss_service_settle_plans(&planned->service, true);
    ss_log_set_sink(NULL);
    return planned;
}

static void end(struct planned *planned)
{
    ss_service_free_plans(&planned->service);
    ss_service_free_profiles(&planned->service);
    ss_shared_clear(&planned->shared);
    ss_config_free(&planned->config);
    free(planned);
}

#define KEYS "\"password\":\"x\",\"method\":\"aes-128-gcm\""

static void each_address_is_planned_for_each_transport(void **state)
{
    static const struct {
        const char *mode;
        size_t tcp, udp;
    } cases[] = {{"tcp_only", 2, 0}, {"tcp_and_udp", 2, 2}, {"udp_only", 0, 2}};
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        char json[256];
        struct planned *p;

        snprintf(json, sizeof json,
                 "{\"server\":[\"127.0.0.1\",\"::1\"],\"server_port\":8388,\"mode\":\"%s\"," KEYS
                 "}",
                 cases[i].mode);
        p = plan(SS_PROGRAM_SERVER, json);
        assert_true(p->good);
        assert_int_equal(p->service.tcp_plans, cases[i].tcp);
        assert_int_equal(p->service.udp_plans, cases[i].udp);
        assert_int_equal(p->service.plan_count, cases[i].tcp + cases[i].udp);
        /* Salts of datagrams are remembered apart, also where they come with a reload alone. */
        assert_non_null(p->shared.packet_salts);
        for (size_t k = 0; k < p->service.plan_count; k++)
            assert_ptr_equal(p->service.plans[k].role.profile, p->service.keyings[0].profile);
        end(p);
    }
}

static void servers_of_one_process_have_modes_and_keys_of_their_own(void **state)
{
    struct planned *p =
        plan(SS_PROGRAM_SERVER,
             "{\"servers\":["
             "{\"server\":\"127.0.0.1\",\"server_port\":1,\"mode\":\"tcp_only\"," KEYS "},"
             "{\"server\":\"127.0.0.1\",\"server_port\":2,\"mode\":\"udp_only\","
             "\"password\":\"y\",\"method\":\"chacha20-ietf-poly1305\"}]}");
    (void)state;

    assert_true(p->good);
    assert_int_equal(p->service.plan_count, 2);
    assert_false(p->service.plans[0].udp);
    assert_true(p->service.plans[1].udp);
    assert_ptr_equal(p->service.plans[0].role.profile, p->service.keyings[0].profile);
    assert_ptr_equal(p->service.plans[1].role.profile, p->service.keyings[1].profile);
    end(p);
}

static void families_of_the_wildcard_are_chosen_by_port_and_transport(void **state)
{
    static const struct {
        const char *json;
        bool ipv6_only[3]; /* by plan; of the addresses that are IPv6 */
        size_t count;
    } cases[] = {
        {"{\"server\":\"::\",\"server_port\":1,\"mode\":\"tcp_and_udp\"," KEYS "}",
         {false, false},
         2},
        {"{\"server\":[\"::\",\"192.0.2.1\"],\"server_port\":1," KEYS "}", {true}, 1},
        {"{\"server\":[\"::\",\"0.0.0.0:2\"],\"server_port\":1," KEYS "}", {false}, 1},
        /* IPv4 of the other transport is in nobody's way. */
        {"{\"servers\":[{\"server\":\"::\",\"server_port\":1,\"mode\":\"tcp_and_udp\"," KEYS "},"
         "{\"server\":\"0.0.0.0\",\"server_port\":1,\"mode\":\"udp_only\"," KEYS "}]}",
         {false, true},
         2},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planned *p = plan(SS_PROGRAM_SERVER, cases[i].json);

        assert_true(p->good);
        assert_true(p->service.plan_count >= cases[i].count);
        for (size_t k = 0; k < cases[i].count; k++)
            assert_int_equal(p->service.plans[k].options.ipv6_only, cases[i].ipv6_only[k]);
        end(p);
    }
}

static void what_is_seen_of_a_server_is_in_one_place(void **state)
{
    struct planned *p = plan(
        SS_PROGRAM_LOCAL, "{\"servers\":["
                          "{\"server\":\"192.0.2.1\",\"server_port\":1,\"weight\":2," KEYS "},"
                          "{\"server\":\"192.0.2.1\",\"server_port\":2,\"udp_weight\":0," KEYS "}],"
                          "\"locals\":[{\"local_port\":1080,\"mode\":\"tcp_and_udp\"}],"
                          "\"balance\":\"random\"}");
    const struct ss_role_options *tcp = &p->service.plans[0].role;
    const struct ss_role_options *udp = &p->service.plans[1].role;
    (void)state;

    assert_true(p->good);
    assert_int_equal(tcp->balance, SS_BALANCE_RANDOM);
    assert_int_equal(tcp->upstream_count, 2);
    assert_int_equal(tcp->upstreams[0].weight, 2 * SS_WEIGHT_ONE);
    assert_int_equal(tcp->upstreams[1].weight, SS_WEIGHT_ONE);
    assert_int_equal(udp->upstream_count, 1);
    assert_non_null(tcp->upstreams[0].state);
    assert_ptr_equal(tcp->upstreams[0].state, udp->upstreams[0].state);
    assert_ptr_not_equal(tcp->upstreams[0].state, tcp->upstreams[1].state);
    end(p);
}

static void upstream_servers_are_used_for_what_they_are_for(void **state)
{
    struct planned *p =
        plan(SS_PROGRAM_LOCAL,
             "{\"servers\":["
             "{\"server\":\"192.0.2.1\",\"server_port\":1,\"mode\":\"tcp_only\"," KEYS "},"
             "{\"server\":[\"192.0.2.2\",\"192.0.2.3\"],\"server_port\":2,\"password\":\"y\","
             "\"method\":\"chacha20-ietf-poly1305\"}],"
             "\"locals\":[{\"local_port\":1080,\"mode\":\"tcp_and_udp\"}]}");
    const struct ss_role_options *tcp = &p->service.plans[0].role;
    const struct ss_role_options *udp = &p->service.plans[1].role;
    (void)state;

    assert_true(p->good);
    assert_int_equal(tcp->upstream_count, 3);
    assert_string_equal(tcp->upstreams[0].endpoint.host, "192.0.2.1");
    assert_ptr_equal(tcp->upstreams[0].profile, p->service.keyings[0].profile);
    assert_ptr_equal(tcp->upstreams[2].profile, p->service.keyings[1].profile);
    assert_int_equal(udp->upstream_count, 2);
    assert_string_equal(udp->upstreams[0].endpoint.host, "192.0.2.2");
    assert_ptr_equal(udp->upstreams[0].profile, p->service.keyings[1].profile);
    assert_null(tcp->profile);
    end(p);

    p = plan(SS_PROGRAM_LOCAL,
             "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1,\"mode\":\"tcp_only\"," KEYS
             "}],\"locals\":[{\"local_port\":1080,\"mode\":\"udp_only\"}]}");
    assert_false(p->good);
    assert_non_null(strstr(words, "none of the servers is for UDP"));
    end(p);
}

#define LOCAL "{\"server\":\"192.0.2.1\",\"server_port\":1,\"local_port\":1080," KEYS
#define USERS \
    ",\"socks5_auth\":{\"password\":{\"users\":[{\"user_name\":\"u\",\"password\":\"p\"}]}}"

static void udp_is_open_where_nobody_can_ask(void **state)
{
    static const struct {
        const char *more;
        bool open;
    } cases[] = {
        {",\"mode\":\"tcp_and_udp\"}", false},
        {",\"mode\":\"udp_only\"}", true},
        {",\"mode\":\"tcp_and_udp\",\"udp_open\":true}", true},
        {",\"mode\":\"tcp_and_udp\"" USERS "}", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        struct planned *p;

        snprintf(json, sizeof json, "%s%s", LOCAL, cases[i].more);
        p = plan(SS_PROGRAM_LOCAL, json);
        assert_true(p->good);
        assert_int_equal(p->service.plans[p->service.plan_count - 1].role.udp_open, cases[i].open);
        end(p);
    }
}

static void users_can_not_be_passed_by(void **state)
{
    static const char *const cases[] = {",\"mode\":\"udp_only\"" USERS "}",
                                        ",\"mode\":\"tcp_and_udp\",\"udp_open\":true" USERS "}"};
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        char json[512];
        struct planned *p;

        snprintf(json, sizeof json, "%s%s", LOCAL, cases[i]);
        p = plan(SS_PROGRAM_LOCAL, json);
        assert_false(p->good);
        assert_non_null(strstr(words, "0:"));
        assert_non_null(strstr(words, "socks5_auth"));
        end(p);
    }
}

static void each_local_has_its_own_users(void **state)
{
    struct planned *p = plan(
        SS_PROGRAM_LOCAL,
        "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1," KEYS "}],\"locals\":["
        "{\"local_port\":1080},"
        "{\"local_port\":1081" USERS "},"
        "{\"local_port\":1082,\"socks5_auth\":{\"password\":{\"users\":["
        "{\"user_name\":\"a\",\"password\":\"1\"},{\"user_name\":\"b\",\"password\":\"2\"}]}}}]}");
    const struct ss_plan *plans = p->service.plans;
    (void)state;

    assert_true(p->good);
    assert_int_equal(plans[0].role.user_count, 0);
    assert_int_equal(plans[1].role.user_count, 1);
    assert_string_equal(plans[1].role.users[0].name, "u");
    assert_int_equal(plans[2].role.user_count, 2);
    assert_string_equal(plans[2].role.users[1].name, "b");
    assert_string_equal(plans[2].role.users[1].password, "2");
    end(p);
}

static void a_tunnel_may_have_its_udp_elsewhere(void **state)
{
    struct planned *p =
        plan(SS_PROGRAM_TUNNEL,
             "{\"servers\":[{\"server\":\"192.0.2.1\",\"server_port\":1," KEYS "}],\"locals\":["
             "{\"protocol\":\"tunnel\",\"local_address\":\"127.0.0.1\",\"local_port\":53,"
             "\"local_udp_address\":\"127.0.0.2\",\"local_udp_port\":54,\"mode\":\"tcp_and_udp\","
             "\"forward_address\":\"192.0.2.53\",\"forward_port\":5353}]}");
    const struct ss_plan *plans = p->service.plans;
    char text[SS_ADDR_TEXT_MAX];
    (void)state;

    assert_true(p->good);
    assert_int_equal(p->service.plan_count, 2);
    assert_string_equal(ss_addr_format(&plans[0].options.address, text), "127.0.0.1:53");
    assert_string_equal(ss_addr_format(&plans[1].options.address, text), "127.0.0.2:54");
    assert_ptr_equal(plans[0].role.fixed_target, plans[1].role.fixed_target);
    assert_int_equal(plans[1].role.fixed_target->port, 5353);
    end(p);
}

static void without_an_address_clients_listen_on_loopback(void **state)
{
    struct planned *p = plan(SS_PROGRAM_LOCAL, LOCAL ",\"mode\":\"tcp_and_udp\"}");
    char text[SS_ADDR_TEXT_MAX];
    (void)state;

    assert_true(p->good);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(ss_addr_format(&p->service.plans[i].options.address, text),
                            "127.0.0.1:1080");
    end(p);

    p = plan(SS_PROGRAM_LOCAL, "{\"server\":\"2001:db8::1\",\"server_port\":1,\"local_port\":1080,"
                               "\"mode\":\"udp_only\"," KEYS "}");
    assert_true(p->good);
    assert_string_equal(ss_addr_format(&p->service.plans[0].options.address, text), "[::1]:1080");
    end(p);
}

static int start(void **state)
{
    (void)state;
    return ss_random_start() != SS_OK;
}

int plan_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_is_planned_for_each_transport),
        cmocka_unit_test(servers_of_one_process_have_modes_and_keys_of_their_own),
        cmocka_unit_test(families_of_the_wildcard_are_chosen_by_port_and_transport),
        cmocka_unit_test(what_is_seen_of_a_server_is_in_one_place),
        cmocka_unit_test(upstream_servers_are_used_for_what_they_are_for),
        cmocka_unit_test(udp_is_open_where_nobody_can_ask),
        cmocka_unit_test(users_can_not_be_passed_by),
        cmocka_unit_test(each_local_has_its_own_users),
        cmocka_unit_test(a_tunnel_may_have_its_udp_elsewhere),
        cmocka_unit_test(without_an_address_clients_listen_on_loopback),
    };

    return cmocka_run_group_tests_name("plan", tests, start, NULL);
}
