/* Bare connections to servers that fail. */
#include "relay/probe.h"

#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "relay/engine_internal.h"
#include "relay/outgoing.h"

struct ss_probe {
    uv_connect_t request;
    struct ss_deadline deadline;
    struct ss_worker *worker;
    struct ss_upstream_state *state; /* held */
    struct ss_conn *conn;            /* NULL: it was given up */
    uint64_t begun_us;
};

size_t ss_probe_size(void)
{
    return sizeof(struct ss_probe);
}

static void on_connected(uv_connect_t *request, int result)
{
    struct ss_probe *probe = SS_CONTAINER_OF(request, struct ss_probe, request);
    struct ss_worker *worker = probe->worker;
    uint64_t now_ms = uv_now(&worker->loop);
    char text[SS_ENDPOINT_TEXT_MAX];

    if (result == 0 && probe->conn != NULL) {
        uint64_t took_us = uv_hrtime() / 1000 - probe->begun_us;

        if (ss_upstream_connected(probe->state, took_us != 0 ? took_us : 1, now_ms))
            ss_log_limited(&worker->engine->dial_log, now_ms, SS_LOG_INFO,
                           "server %s is there again",
                           ss_endpoint_format(ss_upstream_state_endpoint(probe->state), text));
    } else {
        (void)ss_upstream_failed(probe->state, SS_TRANSPORT_TCP, true, probe->begun_us / 1000,
                                 now_ms);
    }
    ss_deadline_stop(&probe->deadline);
    ss_conn_close(probe->conn, SS_CONN_LEAVE);
    ss_upstream_state_release(probe->state);
    ss_pool_release(worker->probes, probe);
}

static void start(struct ss_worker *worker, struct ss_upstream_state *state)
{
    struct ss_ip addresses[SS_UPSTREAM_ADDRESSES_MAX];
    struct ss_outgoing outgoing = {.upstream = true};
    struct ss_probe *probe;

    if (ss_upstream_addresses(state, addresses, uv_now(&worker->loop)) == 0)
        return; /* its name was never known */
    probe = ss_pool_acquire(worker->probes);
    if (probe == NULL)
        return;
    memset(probe, 0, sizeof *probe);
    probe->worker = worker;
    probe->begun_us = uv_hrtime() / 1000;
    outgoing.to.ip = addresses[0];
    outgoing.to.port = ss_upstream_state_endpoint(state)->port;
    if (ss_outgoing_connect(worker, NULL, &outgoing, &probe->request, on_connected, &probe->conn) !=
        SS_OK) {
        ss_pool_release(worker->probes, probe);
        return;
    }
    probe->state = ss_upstream_state_hold(state);
    ss_worker_start_deadline(worker, &worker->probing, &probe->deadline);
}

void ss_probe_where_due(struct ss_worker *worker, struct ss_upstream_set *set)
{
    for (size_t i = 0; set->count > 1 && i < set->count; i++)
        if (ss_upstream_wants_probe(set->states[i], uv_now(&worker->loop)))
            start(worker, set->states[i]);
}

/* The rest is done when libuv tells that the connecting was cancelled. */
static void give_up(struct ss_deadline *deadline)
{
    struct ss_probe *probe = SS_CONTAINER_OF(deadline, struct ss_probe, deadline);

    ss_conn_close(probe->conn, SS_CONN_LEAVE);
    probe->conn = NULL;
}

void ss_probes_expire(struct ss_worker *worker)
{
    struct ss_deadline *due;

    while ((due = ss_deadline_pop(&worker->probing, uv_now(&worker->loop))) != NULL)
        give_up(due);
}

void ss_probes_close(struct ss_worker *worker)
{
    struct ss_deadline *due;

    while ((due = ss_deadline_first(&worker->probing)) != NULL) {
        ss_deadline_stop(due);
        give_up(due);
    }
}
