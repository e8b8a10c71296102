/* Slots of an inbox, and addresses in message headers. */
#include "net/udp_internal.h"

#include <string.h>

#include "base/pages.h"
#include "net/redirect.h"
#include "net/socket.h"

/* How many pages the other slots keep. */
#define PAGES_KEPT 2

enum ss_status ss_udp_slots_init(struct ss_udp_slots *slots)
{
    slots->stretched = 0;
    slots->stride = ss_pages_round(SS_UDP_HEADROOM + SS_UDP_SLOT_PAYLOAD + SS_UDP_TAILROOM);
    slots->start = ss_pages_reserve(slots->stride * SS_UDP_BATCH);
    return slots->start != NULL ? SS_OK : SS_ERR_MEMORY;
}

void ss_udp_slots_clear(struct ss_udp_slots *slots)
{
    ss_pages_release(slots->start, slots->stride * SS_UDP_BATCH);
    slots->start = NULL;
}

uint8_t *ss_udp_slot(const struct ss_udp_slots *slots, size_t index)
{
    return slots->start + index * slots->stride + SS_UDP_HEADROOM;
}

void ss_udp_slot_filled(struct ss_udp_slots *slots, size_t index, size_t len)
{
    if (index >= SS_UDP_SLOTS_KEPT_WHOLE &&
        SS_UDP_HEADROOM + len + SS_UDP_TAILROOM > PAGES_KEPT * ss_pages_size())
        slots->stretched |= UINT64_C(1) << index;
}

void ss_udp_slots_trim(struct ss_udp_slots *slots)
{
    size_t kept = PAGES_KEPT * ss_pages_size();

    if (slots->stretched == 0 || slots->stride <= kept)
        return;
    for (size_t i = SS_UDP_SLOTS_KEPT_WHOLE; i < SS_UDP_BATCH; i++) {
        if (slots->stretched & UINT64_C(1) << i)
            ss_pages_discard(slots->start + i * slots->stride + kept, slots->stride - kept);
    }
    slots->stretched = 0;
}

void ss_udp_prepare_receive(struct msghdr *header, struct ss_udp_ends *ends)
{
    header->msg_name = &ends->name;
    header->msg_namelen = sizeof ends->name;
    header->msg_control = ends->control.bytes;
    header->msg_controllen = sizeof ends->control.bytes;
    header->msg_flags = 0;
}

static void set_ipv4(struct ss_ip *ip, const struct in_addr *from)
{
    memset(ip, 0, sizeof *ip);
    ip->family = SS_FAMILY_IPV4;
    memcpy(ip->bytes, from, 4);
}

static void set_ipv6(struct ss_ip *ip, const struct in6_pktinfo *info)
{
    memset(ip, 0, sizeof *ip);
    /* Nothing can be sent from a group's address. */
    if (IN6_IS_ADDR_MULTICAST(&info->ipi6_addr))
        return;
    ip->family = SS_FAMILY_IPV6;
    memcpy(ip->bytes, &info->ipi6_addr, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&info->ipi6_addr))
        ip->scope = (uint32_t)info->ipi6_ifindex;
    ss_ip_unmap(ip);
}

static void read_original(struct ss_addr *original, const struct cmsghdr *message)
{
    struct sockaddr_storage storage = {0};
    size_t len = message->cmsg_len - CMSG_LEN(0);

    if (len > sizeof storage)
        len = sizeof storage;
    memcpy(&storage, CMSG_DATA(message), len);
    ss_addr_from_sockaddr(original, (const struct sockaddr *)&storage);
}

void ss_udp_read_ends(struct msghdr *header, struct ss_datagram *datagram)
{
    memset(&datagram->peer, 0, sizeof datagram->peer);
    if (header->msg_namelen >= sizeof(struct sockaddr_in))
        ss_addr_from_sockaddr(&datagram->peer, header->msg_name);
    memset(&datagram->local, 0, sizeof datagram->local);
    memset(&datagram->original, 0, sizeof datagram->original);

    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at != NULL; at = CMSG_NXTHDR(header, at)) {
        if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;

            memcpy(&info, CMSG_DATA(at), sizeof info);
            set_ipv6(&datagram->local, &info);
        }
        if (ss_redirect_carries_original(at->cmsg_level, at->cmsg_type))
            read_original(&datagram->original, at);
#if defined(IP_PKTINFO)
        if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;

            /* The address to answer from, which for a broadcast is not the one it was sent to. */
            memcpy(&info, CMSG_DATA(at), sizeof info);
            set_ipv4(&datagram->local, &info.ipi_spec_dst);
        }
#elif defined(IP_RECVDSTADDR)
        if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVDSTADDR) {
            struct in_addr addr;

            memcpy(&addr, CMSG_DATA(at), sizeof addr);
            set_ipv4(&datagram->local, &addr);
        }
#endif
    }
}

/* Writes the one control message that a header carries. */
static void put_control(struct msghdr *header, struct ss_udp_ends *ends, int level, int type,
                        const void *bytes, size_t len)
{
    struct cmsghdr *at = &ends->control.align;

    memset(&ends->control, 0, sizeof ends->control);
    at->cmsg_level = level;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(at), bytes, len);
    header->msg_control = ends->control.bytes;
    header->msg_controllen = CMSG_SPACE(len);
}

static void put_source(struct msghdr *header, struct ss_udp_ends *ends, const struct ss_ip *from)
{
    if (from->family == SS_FAMILY_IPV6) {
        struct in6_pktinfo info = {.ipi6_ifindex = from->scope};

        memcpy(&info.ipi6_addr, from->bytes, 16);
        put_control(header, ends, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
        return;
    }
    /* Linux takes this on an IPv6 socket too when the peer is an IPv4 address in IPv6's form. */
#if defined(IP_PKTINFO)
    struct in_pktinfo info = {0};

    memcpy(&info.ipi_spec_dst, from->bytes, 4);
    put_control(header, ends, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
#elif defined(IP_SENDSRCADDR)
    put_control(header, ends, IPPROTO_IP, IP_SENDSRCADDR, from->bytes, 4);
#endif
}

bool ss_udp_prepare_send(struct msghdr *header, struct ss_udp_ends *ends,
                         enum ss_family socket_family, const struct ss_addr *to,
                         const struct ss_ip *from)
{
    const struct ss_addr *name = to;
    struct ss_addr mapped;

    if (to->ip.family == SS_FAMILY_NONE ||
        (to->ip.family == SS_FAMILY_IPV6 && socket_family == SS_FAMILY_IPV4))
        return false;
    if (to->ip.family == SS_FAMILY_IPV4 && socket_family == SS_FAMILY_IPV6) {
        mapped = (struct ss_addr){.ip = {.family = SS_FAMILY_IPV6}, .port = to->port};
        mapped.ip.bytes[10] = mapped.ip.bytes[11] = 0xff;
        memcpy(mapped.ip.bytes + 12, to->ip.bytes, 4);
        name = &mapped;
    }
    header->msg_name = &ends->name;
    header->msg_namelen = ss_addr_to_sockaddr(name, &ends->name);
    header->msg_control = NULL;
    header->msg_controllen = 0;
    header->msg_flags = 0;
    /* A source of the other family can't be meant for this peer. */
    if (from->family == to->ip.family)
        put_source(header, ends, from);
    return true;
}
