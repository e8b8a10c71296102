/* What the configuration says of the engine, which is made once. */
#include "service/service_internal.h"

#include "codec/codec.h"
#include "codec/packet.h"
#include "sys/process.h"

#define CONNECT_MAX_S 10
/* Sockets at once that answer redirected datagrams. */
#define REDIRECT_ANSWERS 256

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

void ss_service_engine_options(const struct ss_service *service, struct ss_engine_options *options)
{
    const struct ss_config *config = service->config;
    uint32_t connect_s = config->timeout_s < CONNECT_MAX_S ? config->timeout_s : CONNECT_MAX_S;
    /* Other methods and ports may come, by a reload or from a manager. */
    bool grows = config->config_path != NULL || config->control_stdio;
    bool redirects = config->program == SS_PROGRAM_REDIR && (service->udp_plans != 0 || grows);

    *options = (struct ss_engine_options){
        .workers = config->workers,
        .max_connections = config->max_connections,
        .handshake_timeout_ms = config->handshake_timeout_s * 1000,
        .connect_timeout_ms = connect_s * 1000,
        .tcp_idle_timeout_ms = config->tcp_idle_timeout_s * 1000u,
        .keep_alive_s = config->keep_alive_s,
        .half_open_timeout_ms = config->half_open_timeout_s * 1000u,
        .max_associations = config->max_associations,
        /* Ports that are to come may have UDP. */
        .udp_at_start = service->udp_plans != 0 || config->control_stdio,
        .udp_timeout_ms = config->udp_timeout_s * 1000u,
        .mtu = config->mtu,
        .ipv6_first = config->ipv6_first,
        .nameservers = config->nameservers,
        .max_dns_queries = config->max_dns_queries,
        .max_memory = config->max_memory,
        .private_bytes = ss_process_private_bytes,
        .fast_open = config->fast_open,
        .mptcp = config->mptcp && config->program != SS_PROGRAM_SERVER,
        .interface = config->interface,
        .interface_required = config->program == SS_PROGRAM_SERVER,
        .bind_ipv4 = config->bind_ipv4,
        .bind_ipv6 = config->bind_ipv6,
        .outgoing_sndbuf = (int)config->tcp_outgoing_sndbuf,
        .outgoing_rcvbuf = (int)config->tcp_outgoing_rcvbuf,
        .mark = config->outbound_fwmark,
        .max_answers = redirects ? REDIRECT_ANSWERS : 0,
        .codec_size = larger(service->codec_size, grows ? ss_codec_size_max() : 0),
        .packet_link_size =
            larger(service->packet_link_size, grows ? ss_packet_link_size_max() : 0),
        .bypasses = config->program == SS_PROGRAM_LOCAL && (config->acl != NULL || grows),
    };
}
