/* Roles: made, held, and freed by the last who lets go. */
#include "relay/role.h"

#include <stdlib.h>

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
