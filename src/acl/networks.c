/*
 * A binary tree over the bits of addresses, one for each family, in which paths without a branch
 * are one node. All nodes lie in one array.
 */
#include "acl/networks.h"

#include <stdbool.h>
#include <stdlib.h>

#include "acl/lists.h"

/* The bits of an address from the front, IPv4 in the first 32. */
struct key {
    uint64_t high, low;
};

struct acl_node {
    struct key key;    /* zero behind its length */
    uint32_t child[2]; /* by the bit behind the prefix; 0: none */
    uint8_t len;       /* bits */
    uint8_t lists;     /* on which this very prefix stands */
};

/* Nodes 0 and 1 are the roots, which every address passes. */
#define ROOTS 2

static uint32_t root_of(const struct ss_ip *ip)
{
    return ip->family == SS_FAMILY_IPV6;
}

static struct key key_of(const struct ss_ip *ip)
{
    struct key key = {0};

    for (int i = 0; i < (ip->family == SS_FAMILY_IPV6 ? 8 : 4); i++)
        key.high |= (uint64_t)ip->bytes[i] << (56 - 8 * i);
    for (int i = 8; ip->family == SS_FAMILY_IPV6 && i < 16; i++)
        key.low |= (uint64_t)ip->bytes[i] << (120 - 8 * i);
    return key;
}

static unsigned bit_at(struct key key, unsigned at)
{
    return (unsigned)((at < 64 ? key.high >> (63 - at) : key.low >> (127 - at)) & 1);
}

static struct key cut(struct key key, unsigned len)
{
    if (len <= 64) {
        key.low = 0;
        key.high = len == 0 ? 0 : key.high & ~UINT64_C(0) << (64 - len);
    } else {
        key.low &= ~UINT64_C(0) << (128 - len);
    }
    return key;
}

/* Leading bits that are the same, at most `max`. */
static unsigned common_bits(struct key a, struct key b, unsigned max)
{
    unsigned common = 128;

    if (a.high != b.high)
        common = (unsigned)__builtin_clzll(a.high ^ b.high);
    else if (a.low != b.low)
        common = 64 + (unsigned)__builtin_clzll(a.low ^ b.low);
    return common < max ? common : max;
}

/* Room for the nodes that one network can need, so that indexes and pointers stay what they are
 * while it is put in. */
static bool reserve(struct acl_networks *networks)
{
    const uint32_t needed = networks->count + ROOTS + 2;
    const uint32_t cap = needed > networks->cap ? networks->cap + networks->cap / 2 + 64 : 0;
    struct acl_node *nodes;

    if (cap == 0)
        return true;
    nodes = cap < UINT32_MAX / 2 ? realloc(networks->nodes, cap * sizeof *nodes) : NULL;
    if (nodes == NULL)
        return false;
    networks->nodes = nodes;
    networks->cap = cap;
    return true;
}

static uint32_t add_node(struct acl_networks *networks, struct key key, unsigned len,
                         unsigned lists)
{
    networks->nodes[networks->count] =
        (struct acl_node){.key = cut(key, len), .len = (uint8_t)len, .lists = (uint8_t)lists};
    return networks->count++;
}

enum ss_status acl_networks_add(struct acl_networks *networks, const struct ss_ip *ip,
                                unsigned prefix, unsigned list)
{
    const struct key key = cut(key_of(ip), prefix);
    struct acl_node *nodes;
    uint32_t *link = NULL;
    uint32_t at = root_of(ip);

    if (!reserve(networks))
        return SS_ERR_MEMORY;
    while (networks->count < ROOTS)
        add_node(networks, (struct key){0}, 0, 0);
    networks->lists |= ACL_BIT(list);
    nodes = networks->nodes;
    while (nodes[at].len < prefix) {
        unsigned common;

        link = &nodes[at].child[bit_at(key, nodes[at].len)];
        if (*link == 0) {
            *link = add_node(networks, key, prefix, ACL_BIT(list));
            return SS_OK;
        }
        at = *link;
        common = common_bits(key, nodes[at].key, prefix < nodes[at].len ? prefix : nodes[at].len);
        if (common <
            nodes[at].len) { /* a node in between, where the two part or the new one ends */
            const uint32_t between = add_node(networks, key, common, 0);

            nodes[between].child[bit_at(nodes[at].key, common)] = at;
            *link = at = between;
        }
    }
    nodes[at].lists |= (uint8_t)ACL_BIT(list);
    return SS_OK;
}

void acl_networks_trim(struct acl_networks *networks)
{
    struct acl_node *nodes;

    if (networks->count == 0)
        return;
    nodes = realloc(networks->nodes, networks->count * sizeof *nodes);
    if (nodes == NULL)
        return; /* it is as good as before */
    networks->nodes = nodes;
    networks->cap = networks->count;
}

void acl_networks_clear(struct acl_networks *networks)
{
    free(networks->nodes);
    *networks = (struct acl_networks){0};
}

unsigned acl_networks_find(const struct acl_networks *networks, const struct ss_ip *ip)
{
    const struct key key = key_of(ip);
    const unsigned bits = ip->family == SS_FAMILY_IPV6 ? 128 : 32;
    const struct acl_node *node;
    unsigned lists;

    if (networks->count == 0 || ip->family == SS_FAMILY_NONE)
        return 0;
    node = &networks->nodes[root_of(ip)];
    lists = node->lists;
    while (node->len < bits) {
        const uint32_t child = node->child[bit_at(key, node->len)];

        if (child == 0)
            break;
        node = &networks->nodes[child];
        if (common_bits(key, node->key, node->len) < node->len)
            break;
        lists |= node->lists;
    }
    return lists;
}
