/*
 * A name server on loopback for tests, in the test's own loop. What it says is chosen by the first
 * label of the name:
 *
 *   both four six none    addresses of these families; the others have no data
 *   nx servfail refused   these codes
 *   silent                never an answer
 *   hold4 hold6 holdboth  as `both`, but A, AAAA or both wait for dns_stub_release
 *   fail4 fail6           SERVFAIL for A or AAAA, an address for the other
 *   many many4            20 addresses of each family, or of IPv4 alone
 *   double                every address twice
 *   mapped                an AAAA record with the IPv6 form of the A record
 *   cname                 an alias, then as `both`
 *   cut                   truncated on UDP, whole on TCP
 *   broken                what `dns_stub.breakage` makes of the answer of `both`
 *
 * A later label says more:
 *
 *   ttl<n>                records live so many seconds instead of 60
 *   a-ttl<n> aaaa-ttl<n>  the same for answers of that type alone
 *   soa<n>                a "no" comes with an SOA record whose minimum is n
 */
#ifndef SS_TESTS_RESOLVER_DNS_STUB_H
#define SS_TESTS_RESOLVER_DNS_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#define DNS_STUB_PACKET_MAX 1024

/* Changes an answer of *len bytes, with room for DNS_STUB_PACKET_MAX. `name` is the question's. */
typedef void dns_stub_breakage_fn(uint8_t *answer, size_t *len, const char *name);

struct dns_stub_held {
    struct sockaddr_storage peer;
    uint8_t answer[DNS_STUB_PACKET_MAX];
    size_t len;
};

struct dns_stub {
    uv_udp_t udp;
    uv_tcp_t tcp;
    char address[32]; /* "127.0.0.1:port" */
    dns_stub_breakage_fn *breakage;
    unsigned asked, asked_tcp, tcp_clients;
    char last_name[320];
    uint16_t peer_ports[1024]; /* of the first questions */
    struct dns_stub_held held[64];
    unsigned held_count;
};

void dns_stub_start(struct dns_stub *stub, uv_loop_t *loop);
/* Begins to answer on `udp`; dns_stub_start does it. */
void dns_stub_listen(struct dns_stub *stub);

void dns_stub_release(struct dns_stub *stub);

/* Its handles are gone when the loop has run. */
void dns_stub_stop(struct dns_stub *stub);

#endif
