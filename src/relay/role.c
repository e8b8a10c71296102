/* Roles: made, held, and freed by the last who lets go. */
#include "relay/role.h"

#include <stdlib.h>
#include <string.h>

enum ss_status ss_role_new(struct ss_role **out, const struct ss_role_options *options)
{
    struct ss_role *role = calloc(1, sizeof *role);
    enum ss_status status;

    *out = NULL;
    if (role == NULL)
        return SS_ERR_MEMORY;
    role->options = *options;
    status = ss_upstream_set_init(&role->upstreams, options->upstreams, options->upstream_count,
                                  options->balance);
    if (status != SS_OK) {
        free(role);
        return status;
    }
    if (options->profile != NULL)
        ss_profile_hold(options->profile);
    for (size_t i = 0; i < options->upstream_count; i++)
        ss_profile_hold(options->upstreams[i].profile);
    atomic_init(&role->holders, 1);
    *out = role;
    return SS_OK;
}

static bool upstreams_are_alike(const struct ss_role_options *a, const struct ss_role_options *b)
{
    if (a->upstream_count != b->upstream_count || a->balance != b->balance)
        return false;
    for (size_t i = 0; i < a->upstream_count; i++) {
        const struct ss_upstream *one = &a->upstreams[i], *other = &b->upstreams[i];

        if (one->profile != other->profile || one->weight != other->weight ||
            one->endpoint.port != other->endpoint.port ||
            strcmp(one->endpoint.host, other->endpoint.host) != 0)
            return false;
    }
    return true;
}

static bool guarded_are_alike(const struct ss_role_options *a, const struct ss_role_options *b)
{
    if (a->guarded_count != b->guarded_count)
        return false;
    for (size_t i = 0; i < a->guarded_count; i++)
        if (!ss_endpoint_equal(&a->guarded[i], &b->guarded[i]))
            return false;
    return true;
}

static bool users_are_alike(const struct ss_role_options *a, const struct ss_role_options *b)
{
    if (a->user_count != b->user_count)
        return false;
    for (size_t i = 0; i < a->user_count; i++)
        if (strcmp(a->users[i].name, b->users[i].name) != 0 ||
            strcmp(a->users[i].password, b->users[i].password) != 0)
            return false;
    return true;
}

bool ss_role_is_alike(const struct ss_role *one, const struct ss_role *other)
{
    const struct ss_role_options *a = &one->options, *b = &other->options;
    bool target_is_same = a->fixed_target == NULL || b->fixed_target == NULL
                              ? a->fixed_target == b->fixed_target
                              : ss_target_equal(a->fixed_target, b->fixed_target);

    return target_is_same && a->ingress == b->ingress && a->egress == b->egress &&
           a->profile == b->profile && a->udp_open == b->udp_open && a->tproxy == b->tproxy &&
           a->tos == b->tos && ss_ip_equal(&a->advertised, &b->advertised) &&
           upstreams_are_alike(a, b) && guarded_are_alike(a, b) && users_are_alike(a, b);
}

struct ss_role *ss_role_hold(struct ss_role *role)
{
    atomic_fetch_add_explicit(&role->holders, 1, memory_order_relaxed);
    return role;
}

void ss_role_release(struct ss_role *role)
{
    /* Whoever frees it must see all that the others did with it. */
    if (role == NULL || atomic_fetch_sub_explicit(&role->holders, 1, memory_order_acq_rel) != 1)
        return;
    ss_upstream_set_clear(&role->upstreams);
    ss_profile_release(role->options.profile);
    for (size_t i = 0; i < role->options.upstream_count; i++)
        ss_profile_release(role->options.upstreams[i].profile);
    if (role->options.released != NULL)
        role->options.released(role->options.owner);
    free(role);
}
