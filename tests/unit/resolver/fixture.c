/* What the tests of the resolver share. */
#include "unit/resolver/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_tick(uv_timer_t *tick)
{
    (void)tick;
}

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    int fd;

    assert_non_null(f);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(ss_resolver_global_start(), SS_OK);
    uv_timer_init(&f->loop, &f->tick);
    dns_stub_start(&f->stub, &f->loop);
    uv_timer_start(&f->tick, on_tick, 10, 10);
    snprintf(f->hosts_path, sizeof f->hosts_path, P_tmpdir "/hosts-XXXXXX");
    fd = mkstemp(f->hosts_path);
    assert_true(fd >= 0);
    close(fd);
    f->options.nameservers = f->stub.address;
    f->options.hosts_path = f->hosts_path;
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    ss_resolver_close(f->resolver);
    dns_stub_stop(&f->stub);
    uv_close((uv_handle_t *)&f->tick, NULL);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    ss_resolver_global_end();
    unlink(f->hosts_path);
    free(f);
    return 0;
}

void fixture_open(struct fixture *f)
{
    assert_int_equal(ss_resolver_new(&f->resolver, &f->loop, &f->options), SS_OK);
}

void fixture_write_hosts(struct fixture *f, const char *text)
{
    FILE *file = fopen(f->hosts_path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void on_resolved(void *owner, enum ss_status status, const struct ss_ip *addresses,
                        size_t count)
{
    struct result *result = owner;

    assert_true(count <= SS_ADDRESSES_MAX);
    assert_true((status == SS_OK) == (count != 0));
    result->calls++;
    result->query = NULL;
    result->status = status;
    result->count = count;
    if (count != 0)
        memcpy(result->addresses, addresses, count * sizeof *addresses);
}

void fixture_ask(struct fixture *f, const char *name, struct result *result)
{
    memset(result, 0, sizeof *result);
    result->query = ss_resolver_ask(f->resolver, name, on_resolved, result);
    assert_int_equal(result->calls, 0);
}

void fixture_await(struct fixture *f, const struct result *result)
{
    while (result->calls == 0)
        fixture_turn(f);
    assert_int_equal(result->calls, 1);
}

struct result fixture_resolve(struct fixture *f, const char *name)
{
    struct result result;

    fixture_ask(f, name, &result);
    assert_non_null(result.query);
    fixture_await(f, &result);
    return result;
}

void fixture_await_held(struct fixture *f, unsigned count)
{
    while (f->stub.held_count < count)
        fixture_turn(f);
}

void fixture_turn(struct fixture *f)
{
    assert_int_not_equal(uv_run(&f->loop, UV_RUN_ONCE), 0);
}

void fixture_await_idle(struct fixture *f)
{
    while (fixture_active(f) != 0)
        fixture_turn(f);
}

static void count_active(uv_handle_t *handle, void *arg)
{
    unsigned *count = arg;
    const uv_handle_type type = uv_handle_get_type(handle);

    *count += (type == UV_POLL || type == UV_TIMER) && uv_is_active(handle);
}

unsigned fixture_active(struct fixture *f)
{
    unsigned count = 0;

    uv_walk(&f->loop, count_active, &count);
    return count - 1; /* the tick */
}

void assert_addresses(const struct result *result, const char *list)
{
    char text[SS_ADDRESSES_MAX * (SS_IP_TEXT_MAX + 1)] = "", ip[SS_IP_TEXT_MAX];

    for (size_t i = 0; i < result->count; i++) {
        strcat(text, i != 0 ? " " : "");
        strcat(text, ss_ip_format(&result->addresses[i], ip));
    }
    assert_string_equal(text, list);
    assert_int_equal(result->status, SS_OK);
}
