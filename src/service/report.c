/* What a server tells the manager at --manager-address of its traffic. */
#include "service/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/log.h"
#include "net/command_socket.h"
#include "sys/names.h"

#define INTERVAL_MS 5000

struct ss_report {
    const struct ss_sockets *sockets;
    char *path; /* that the address may point to */
    struct ss_command_address address;
    uv_timer_t timer;
    bool failed; /* the last report: the next failure is not said again */
};

/* One datagram a port, whose NUL at the end the classic programs send too. */
static void send_port(struct ss_report *report, uint16_t port, uint64_t rx_bytes, uint64_t tx_bytes)
{
    const char *error_text = "";
    char text[64];
    int len =
        snprintf(text, sizeof text, "stat: {\"%u\":%" PRIu64 "}", port, rx_bytes + tx_bytes) + 1;
    enum ss_status status = ss_command_report(
        &report->address, (struct ss_view){(const uint8_t *)text, (size_t)len}, &error_text);

    ss_log_debug("update traffic stat: tx: %" PRIu64 " rx: %" PRIu64, tx_bytes, rx_bytes);
    if (status != SS_OK && !report->failed)
        ss_log_error("stat_sendto: %s: the manager is not told of the traffic", error_text);
    report->failed = status != SS_OK;
}

static void on_time(uv_timer_t *timer)
{
    struct ss_report *report = timer->data;
    size_t count;
    struct ss_port_traffic *ports = ss_service_port_traffic(report->sockets, &count);

    for (size_t i = 0; i < count; i++)
        send_port(report, ports[i].port, ports[i].rx_bytes, ports[i].tx_bytes);
    ss_heap_free(ports);
}

/* Host and port make it UDP; anything else is a path. */
static bool find_address(struct ss_command_address *address, const char *text)
{
    struct ss_endpoint endpoint;
    const char *error_text;

    address->path = text;
    if (ss_endpoint_parse(&endpoint, text) != SS_OK || endpoint.port == 0)
        return true;
    address->udp.port = endpoint.port;
    if (ss_names_first(&address->udp.ip, endpoint.host, &error_text) == SS_OK)
        return true;
    ss_log_error("manager_address: %s: %s", text, error_text);
    return false;
}

static void free_report(struct ss_report *report)
{
    if (report != NULL)
        free(report->path);
    free(report);
}

bool ss_report_start(struct ss_report **out, const char *manager_address,
                     const struct ss_sockets *sockets, uv_loop_t *loop)
{
    struct ss_report *report;

    *out = NULL;
    if (manager_address == NULL)
        return true;
    report = calloc(1, sizeof *report);
    if (report != NULL)
        report->path = strdup(manager_address);
    if (report == NULL || report->path == NULL || !find_address(&report->address, report->path)) {
        free_report(report);
        return false;
    }
    report->sockets = sockets;
    uv_timer_init(loop, &report->timer);
    report->timer.data = report;
    uv_timer_start(&report->timer, on_time, INTERVAL_MS, INTERVAL_MS);
    *out = report;
    return true;
}

static void on_closed(uv_handle_t *handle)
{
    free_report(handle->data);
}

void ss_report_stop(struct ss_report **report)
{
    if (*report != NULL)
        uv_close((uv_handle_t *)&(*report)->timer, on_closed);
    *report = NULL;
}
