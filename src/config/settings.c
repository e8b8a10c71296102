/* The table of settings: each option and key of every program, once. */
#include "config/config_internal.h"

#include <string.h>

#include "codec/salt_pool.h"

#define L       SS_PROGRAM_LOCAL
#define S       SS_PROGRAM_SERVER
#define T       SS_PROGRAM_TUNNEL
#define R       SS_PROGRAM_REDIR
#define M       SS_PROGRAM_MANAGER
#define LSTR    (L | S | T | R)
#define ALL     (L | S | T | R | M)
#define DAY_S   86400u
#define YEAR_S  31536000u
#define WEEKS_S 2592000u /* thirty days: milliseconds of it fit into 32 bits */

/* The kernel's bound. */
#define KEEP_ALIVE_MAX_S 32767u

#define AT(field) .offset = offsetof(struct ss_config, field)
#define NO_FIELD  .offset = UINT16_MAX

/* A row a setting, filled line by line as one would by hand. */
/* clang-format off */
const struct ss_setting ss_settings[] = {
    /* What is relayed, between whom, under which key. */
    {.key = "server", .letter = 's', .argument = "host[:port]", .help = "server; up to ten times",
     .kind = SS_KIND_SERVERS, .rule = SS_RULE_ANY, .line = ALL, .file = ALL, NO_FIELD},
    {.key = "server_port", .letter = 'p', .argument = "port", .help = "port of the server",
     .kind = SS_KIND_PORT, .rule = SS_RULE_TEXT, .line = LSTR, .eat = M, .file = LSTR,
     AT(server_port)},
    {.key = "local_port", .letter = 'l', .argument = "port", .help = "port to listen on",
     .kind = SS_KIND_PORT, .rule = SS_RULE_TEXT, .line = L | T | R, .eat = S | M, .file = L | T | R,
     AT(local_port)},
    {.key = "password", .option = "password", .letter = 'k', .argument = "password",
     .help = "password", .kind = SS_KIND_SECRET, .rule = SS_RULE_TEXT, .line = LSTR, .eat = M,
     .file = LSTR, AT(password)},
    {.key = "key", .option = "key", .argument = "base64", .help = "key instead of a password",
     .kind = SS_KIND_SECRET, .rule = SS_RULE_TEXT, .line = LSTR, .eat = M, .file = LSTR, AT(key)},
    {.key = "method", .letter = 'm', .argument = "method", .help = "method, see below",
     .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = ALL, .file = ALL, AT(method)},
    {.key = "mode", .kind = SS_KIND_MODE, .rule = SS_RULE_TEXT, .file = ALL, AT(mode)},
    {.letter = 'u', .help = "relay UDP too", .kind = SS_KIND_TCP_UDP, .line = ALL, NO_FIELD},
    {.letter = 'U', .help = "relay UDP only", .kind = SS_KIND_UDP_ONLY, .line = ALL, NO_FIELD},
    {.key = "tunnel_address", .letter = 'L', .argument = "host:port",
     .help = "where the tunnel leads", .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = T,
     .file = T, AT(tunnel_address)},
    {.key = "port_password", .kind = SS_KIND_PORT_PASSWORD, .rule = SS_RULE_ANY, .file = S | M,
     NO_FIELD},
    {.key = "servers", .alias = "shadowsocks", .kind = SS_KIND_SERVER_LIST, .rule = SS_RULE_ANY,
     .file = ALL, NO_FIELD},
    {.key = "balance", .option = "balance", .argument = "way",
     .help = "fastest or random: which of several servers", .kind = SS_KIND_BALANCE,
     .rule = SS_RULE_OURS, .line = L | T | R, .file = L | T | R, .ours = true, AT(balance)},
    {.key = "locals", .kind = SS_KIND_LOCAL_LIST, .rule = SS_RULE_ANY, .file = L | T | R, NO_FIELD},
    {.key = "users", .kind = SS_KIND_IDENTITIES, .rule = SS_RULE_ANY, .file = LSTR, NO_FIELD},
    {.key = "socks5_auth", .kind = SS_KIND_SOCKS5_AUTH, .rule = SS_RULE_ANY, .file = L, NO_FIELD},
    {.key = "socks5_auth_config_path", .option = "socks5-auth-config-path", .argument = "file",
     .help = "users and passwords of SOCKS5 clients", .kind = SS_KIND_TEXT, .rule = SS_RULE_OURS,
     .line = L, .file = L, .ours = true, AT(socks5_auth_path)},
    {.key = "plugin", .option = "plugin", .argument = "program", .help = "SIP003 plugin",
     .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = ALL, .file = ALL, AT(plugin)},
    {.key = "plugin_opts", .option = "plugin-opts", .argument = "options",
     .help = "options for the plugin", .kind = SS_KIND_SECRET, .rule = SS_RULE_TEXT, .line = ALL,
     .file = ALL, AT(plugin_opts)},
    {.key = "plugin_args", .option = "plugin-args", .argument = "word",
     .help = "an argument for the plugin; may be repeated", .kind = SS_KIND_PLUGIN_ARGS,
     .rule = SS_RULE_ANY, .line = ALL, .file = ALL, .ours = true, NO_FIELD},
    {.key = "plugin_mode", .option = "plugin-mode", .argument = "mode",
     .help = "what the plugin carries: tcp_only, tcp_and_udp or udp_only", .kind = SS_KIND_MODE,
     .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true, AT(plugin_mode)},
    {.key = "plugin_exit", .option = "plugin-exit", .help = "end when a plugin ends",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true,
     AT(plugin_exit)},
    {.key = "acl", .option = "acl", .argument = "file", .help = "access control list",
     .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = L | S | M, .file = L | S | M, AT(acl)},
    {.key = "block_local", .option = "block-local",
     .help = "refuse targets in loopback, private and other local ranges", .kind = SS_KIND_FLAG,
     .rule = SS_RULE_OURS, .line = S | M, .file = S | M, .ours = true, AT(block_local)},
    {.key = "manager_address", .option = "manager-address", .argument = "address",
     .help = "where the manager listens", .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = S | M,
     .file = M, AT(manager_address)},
    {.key = "manager_port", .kind = SS_KIND_PORT, .rule = SS_RULE_OURS, .file = M, AT(manager_port)},
    {.key = "manager_socket_mode", .option = "manager-socket-mode", .argument = "octal",
     .help = "permissions of the manager's local socket", .kind = SS_KIND_TEXT,
     .rule = SS_RULE_OURS, .line = M, .file = M, .ours = true, AT(manager_socket_mode)},
    {.key = "workdir", .option = "workdir", .letter = 'D', .argument = "folder",
     .help = "where files of ports are kept", .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT,
     .line = M, .file = M, AT(workdir)},
    {.option = "executable", .argument = "program", .help = "the ss-server that serves the ports",
     .kind = SS_KIND_TEXT, .line = M, AT(executable)},
    {.key = "restore", .option = "restore", .help = "ports added at run time outlive an orderly end",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_OURS, .line = M, .file = M, .ours = true, AT(restore)},
    {.option = "process-per-port", .help = "one ss-server for each port, as it used to be",
     .kind = SS_KIND_FLAG, .line = M, .ours = true, AT(process_per_port)},
    {.option = "control-stdio", .help = "ports come over standard input, from ss-manager",
     .kind = SS_KIND_FLAG, .line = S, .ours = true, AT(control_stdio)},

    /* Addresses and names. */
    {.key = "local_address", .letter = 'b', .argument = "address",
     .help = "address to listen on; ss-server: source address", .kind = SS_KIND_ADDRESSES,
     .rule = SS_RULE_TEXT, .line = ALL, .file = ALL, NO_FIELD},
    {.key = "local_ipv4_address", .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .file = S | M,
     AT(local_ipv4_address)},
    {.key = "local_ipv6_address", .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .file = S | M,
     AT(local_ipv6_address)},
    {.key = "outbound_bind_addr", .option = "outbound-bind-addr", .argument = "address",
     .help = "source address of outgoing connections", .kind = SS_KIND_TEXT, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, AT(outbound_bind_addr)},
    {.key = "outbound_bind_interface", .letter = 'i', .argument = "interface",
     .help = "interface of outgoing connections", .kind = SS_KIND_TEXT, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, AT(interface)},
    {.key = "outbound_fwmark", .option = "outbound-fwmark", .argument = "number",
     .help = "mark of what is sent, for firewall rules", .kind = SS_KIND_MARK,
     .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true, AT(outbound_fwmark)},
    {.option = "fwmark", .argument = "number", .kind = SS_KIND_ALIAS, .line = ALL, .ours = true,
     AT(outbound_fwmark)},
    {.key = "ipv6_first", .letter = '6', .help = "prefer IPv6 addresses", .kind = SS_KIND_FLAG,
     .rule = SS_RULE_FLAG, .line = ALL, .file = L | S | R | M, AT(ipv6_first)},
    {.key = "nameserver", .letter = 'd', .argument = "ip[:port],...", .help = "name servers",
     .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = S | M, .file = S | M, AT(nameservers)},
    {.key = "dns", .kind = SS_KIND_DNS, .rule = SS_RULE_ANY, .file = ALL, NO_FIELD},

    /* Sockets. */
    {.key = "fast_open", .option = "fast-open", .help = "TCP Fast Open", .kind = SS_KIND_FLAG,
     .rule = SS_RULE_FLAG, .line = ALL, .file = ALL, AT(fast_open)},
    {.key = "mptcp", .option = "mptcp", .help = "Multipath TCP",
     .said = "enable multipath TCP (upstream)", .kind = SS_KIND_FLAG, .rule = SS_RULE_FLAG,
     .line = ALL, .file = ALL, AT(mptcp)},
    {.key = "no_delay", .option = "no-delay", .help = "accepted; small packets never wait",
     .said = "enable TCP no-delay", .kind = SS_KIND_FLAG, .rule = SS_RULE_FLAG, .line = ALL,
     .file = ALL, AT(no_delay)},
    {.key = "reuse_port", .option = "reuse-port", .help = "share the port with other processes",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_FLAG, .line = ALL, .file = ALL, AT(reuse_port)},
    {.key = "ipv6_only", .option = "ipv6-only", .help = "on `::` serve IPv6 alone",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true,
     AT(ipv6_only)},
    {.key = "tcp_tproxy", .letter = 'T', .help = "TCP comes by TPROXY, not by REDIRECT",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_FLAG, .line = R, .file = R, AT(tcp_tproxy)},
    {.key = "dscp", .kind = SS_KIND_DSCP, .rule = SS_RULE_ANY, .file = R, NO_FIELD},
    {.key = "mtu", .option = "mtu", .argument = "bytes", .help = "largest UDP packet",
     .said = "set MTU to ", .kind = SS_KIND_LOOSE, .rule = SS_RULE_INTEGER, .line = ALL,
     .file = ALL, AT(mtu)},
    {.key = "udp_open", .option = "udp-open", .help = "UDP without an ASSOCIATE connection too",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_OURS, .line = L, .file = L, .ours = true, AT(udp_open)},
    {.key = "udp_advertised_address", .option = "udp-advertised-address", .argument = "ip",
     .help = "address that UDP ASSOCIATE is answered with", .kind = SS_KIND_TEXT,
     .rule = SS_RULE_OURS, .line = L, .file = L, .ours = true, AT(udp_advertised_address)},
    {.key = "tcp_incoming_sndbuf", .option = "tcp-incoming-sndbuf", .argument = "bytes",
     .help = "send buffer of accepted connections", .kind = SS_KIND_LOOSE, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .min = 16382, .max = INT32_MAX,
     AT(tcp_incoming_sndbuf)},
    {.key = "tcp_incoming_rcvbuf", .option = "tcp-incoming-rcvbuf", .argument = "bytes",
     .help = "receive buffer of accepted connections", .kind = SS_KIND_LOOSE, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .min = 16382, .max = INT32_MAX,
     AT(tcp_incoming_rcvbuf)},
    {.key = "tcp_outgoing_sndbuf", .option = "tcp-outgoing-sndbuf", .argument = "bytes",
     .help = "send buffer of outgoing connections", .kind = SS_KIND_LOOSE, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .min = 16382, .max = INT32_MAX,
     AT(tcp_outgoing_sndbuf)},
    {.key = "tcp_outgoing_rcvbuf", .option = "tcp-outgoing-rcvbuf", .argument = "bytes",
     .help = "receive buffer of outgoing connections", .kind = SS_KIND_LOOSE, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .min = 16382, .max = INT32_MAX,
     AT(tcp_outgoing_rcvbuf)},

    /* Time and room. */
    {.key = "timeout", .letter = 't', .argument = "seconds",
     .help = "bound of connecting and of idle UDP", .kind = SS_KIND_NUMBER, .rule = SS_RULE_TEXT,
     .line = ALL, .file = ALL, .max = YEAR_S, AT(timeout_s)},
    {.key = "tcp_idle_timeout", .option = "tcp-idle-timeout", .argument = "seconds",
     .help = "an idle TCP connection ends after this", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .min = 1, .max = WEEKS_S, .fallback = DAY_S,
     AT(tcp_idle_timeout_s)},
    {.key = "half_open_timeout", .option = "half-open-timeout", .argument = "seconds",
     .help = "the same, once one side has ended", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .min = 1, .max = WEEKS_S, .fallback = 300,
     AT(half_open_timeout_s)},
    {.key = "keep_alive", .option = "keep-alive", .argument = "seconds",
     .help = "silence before TCP keep-alive probes; 0: none", .kind = SS_KIND_NUMBER,
     .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true, .max = KEEP_ALIVE_MAX_S,
     .fallback = 40, AT(keep_alive_s)},
    {.key = "handshake_timeout", .option = "handshake-timeout", .argument = "seconds",
     .help = "a request must be complete within this", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .min = 1, .max = DAY_S, .fallback = 60,
     AT(handshake_timeout_s)},
    {.key = "max_connections", .option = "max-connections", .argument = "number",
     .help = "TCP connections at once", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS, .line = ALL,
     .file = ALL, .ours = true, .min = 1, .max = 1u << 20,
     .fallback = sizeof(void *) > 4 ? 8192 : 1024, AT(max_connections)},
    {.key = "udp_timeout", .option = "udp-timeout", .argument = "seconds",
     .help = "an idle UDP association ends after this", .kind = SS_KIND_NUMBER,
     .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true, .min = 1, .max = WEEKS_S,
     AT(udp_timeout_s)},
    {.key = "max_associations", .alias = "udp_max_associations", .option = "max-associations",
     .argument = "number", .help = "UDP associations at once", .kind = SS_KIND_NUMBER,
     .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true, .min = 1, .max = 1u << 20,
     AT(max_associations)},
    {.key = "max_dns_queries", .option = "max-dns-queries", .argument = "number",
     .help = "names looked up at once", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS, .line = ALL,
     .file = ALL, .ours = true, .min = 1, .max = 1u << 16, .fallback = 1024, AT(max_dns_queries)},
    {.key = "max_memory", .option = "max-memory", .argument = "bytes",
     .help = "a ceiling on private memory", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .min = 8u << 20, .max = UINT32_MAX, AT(max_memory)},
    {.key = "salt_memory", .option = "salt-memory", .argument = "number",
     .help = "salts remembered against replay", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .min = 1000, .max = 100000000, AT(salt_memory)},
    {.key = "salt_pool", .option = "salt-pool", .argument = "number",
     .help = "the same of 2022 methods, exact", .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .min = 1000, .max = SS_SALT_POOL_MAX,
     .fallback = SS_SALT_POOL_DEFAULT, AT(salt_pool)},
    {.key = "workers", .option = "workers", .argument = "number", .help = "threads that relay",
     .kind = SS_KIND_NUMBER, .rule = SS_RULE_OURS, .line = ALL, .file = ALL, .ours = true,
     .min = 1, .max = 64, AT(workers)},
    {.key = "nofile", .letter = 'n', .argument = "number", .help = "limit of open files",
     .kind = SS_KIND_LOOSE, .rule = SS_RULE_INTEGER, .line = ALL, .file = ALL, .min = 1024,
     AT(nofile)},

    /* The process and its log. */
    {.letter = 'c', .argument = "file", .help = "configuration file, or an ss:// URL",
     .kind = SS_KIND_CONFIG, .line = ALL, AT(config_path)},
    {.letter = 'f', .argument = "file", .help = "go to the background; file for the process id",
     .kind = SS_KIND_TEXT, .line = ALL, AT(pid_file)},
    {.key = "user", .letter = 'a', .argument = "user", .help = "user to run as",
     .kind = SS_KIND_TEXT, .rule = SS_RULE_TEXT, .line = ALL, .file = ALL, AT(user)},
    {.key = "use_syslog", .option = "use-syslog", .help = "log to the system's log",
     .kind = SS_KIND_FLAG, .rule = SS_RULE_FLAG, .line = ALL, .file = ALL, .ours = true,
     AT(use_syslog)},
    {.letter = 'v', .help = "log more", .kind = SS_KIND_FLAG, .line = ALL, AT(verbose)},
    {.key = "log_level", .option = "log-level", .argument = "level",
     .help = "error, warn, info or debug", .kind = SS_KIND_LEVEL, .rule = SS_RULE_OURS,
     .line = ALL, .file = ALL, .ours = true, .fallback = SS_LOG_INFO, AT(log_level)},
    {.option = "list-settings", .kind = SS_KIND_LIST_SETTINGS, .line = ALL, .ours = true,
     NO_FIELD},
    {.option = "check-config", .help = "show what the configuration comes to, and end",
     .kind = SS_KIND_CHECK_CONFIG, .line = ALL, .ours = true, NO_FIELD},
    {.option = "print-url", .help = "show the ss:// URL, and end", .kind = SS_KIND_PRINT_URL,
     .line = ALL, .ours = true, NO_FIELD},
    {.option = "gen-key", .argument = "method", .help = "show a fresh key for the method, and end",
     .kind = SS_KIND_GEN_KEY, .line = ALL, .ours = true, NO_FIELD},
    {.option = "help", .letter = 'h', .help = "this text", .kind = SS_KIND_HELP, .line = ALL,
     NO_FIELD},
    {.key = "auth", .letter = 'A', .kind = SS_KIND_ONE_TIME, .rule = SS_RULE_ANY, .line = ALL,
     .file = ALL, NO_FIELD},

    /* Of a later development version of the classic suite. */
    {.option = "nftables-sets", .argument = "sets", .kind = SS_KIND_REFUSED, .line = S | M,
     .ours = true, NO_FIELD},

    /* Keys of programs that are not of this table's mains, for their types. */

    /* Keys of other programs that read the same files. */
    {.key = "remarks", .alias = "name", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "id", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "version", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "protocol", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "disabled", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "runtime", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "log", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "udp_mtu", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "dns_cache_size", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY, NO_FIELD},
    {.key = "outbound_user_cookie", .kind = SS_KIND_REFUSED, .rule = SS_RULE_ANY, .file = ALL,
     NO_FIELD},
    {.key = "outbound_udp_allow_fragmentation", .kind = SS_KIND_LABEL, .rule = SS_RULE_ANY,
     NO_FIELD},
    {.key = "outbound_proxy", .kind = SS_KIND_REFUSED, .rule = SS_RULE_ANY, .file = ALL, NO_FIELD},
    {.key = "security", .kind = SS_KIND_NOT_YET, .rule = SS_RULE_ANY, .file = ALL, NO_FIELD},
    {.key = "balancer", .kind = SS_KIND_NOT_YET, .rule = SS_RULE_ANY, .file = ALL, NO_FIELD},
    {.key = "online_config", .kind = SS_KIND_NOT_YET, .rule = SS_RULE_ANY, .file = ALL, NO_FIELD},
};
/* clang-format on */

const size_t ss_setting_count = sizeof ss_settings / sizeof ss_settings[0];
_Static_assert(sizeof ss_settings / sizeof ss_settings[0] <= SS_SETTINGS_MAX, "room for all rows");
_Static_assert(sizeof(struct ss_config) < UINT16_MAX, "offsets fit");

size_t ss_setting_at(size_t offset)
{
    size_t row = 0;

    while (row + 1 < ss_setting_count && ss_settings[row].offset != offset)
        row++;
    return row;
}

const struct ss_setting *ss_setting_by_key(const char *key, size_t *row)
{
    for (size_t i = 0; i < ss_setting_count; i++) {
        const struct ss_setting *setting = &ss_settings[i];

        if ((setting->key != NULL && strcmp(setting->key, key) == 0) ||
            (setting->alias != NULL && strcmp(setting->alias, key) == 0)) {
            *row = i;
            return setting;
        }
    }
    return NULL;
}
