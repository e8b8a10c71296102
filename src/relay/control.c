/* The table of controls. */
#include "relay/control.h"

#include <string.h>

#include "crypto/kdf.h"
#include "crypto/random.h"
#include "relay/association.h"

static struct ss_control **bucket_of(struct ss_controls *controls, const struct ss_ip *client)
{
    uint64_t hash = ss_fingerprint(controls->seed, client->bytes, sizeof client->bytes);

    return &controls->buckets[hash % SS_CONTROL_BUCKETS];
}

enum ss_status ss_controls_init(struct ss_controls *controls, uint32_t capacity)
{
    memset(controls, 0, sizeof *controls);
    ss_random_bytes(controls->seed, sizeof controls->seed);
    controls->pool = ss_pool_new(
        &(struct ss_pool_options){.slot_size = sizeof(struct ss_control), .capacity = capacity});
    return controls->pool != NULL ? SS_OK : SS_ERR_MEMORY;
}

void ss_controls_clear(struct ss_controls *controls)
{
    ss_pool_free(controls->pool);
    controls->pool = NULL;
}

struct ss_control *ss_control_open(struct ss_controls *controls, const struct ss_ip *client,
                                   const struct ss_addr *from)
{
    struct ss_control **bucket = bucket_of(controls, client);
    struct ss_control *control = ss_pool_acquire(controls->pool);

    if (control == NULL)
        return NULL;
    memset(control, 0, sizeof *control);
    control->client = *client;
    control->from = *from;
    control->next = *bucket;
    if (*bucket != NULL)
        (*bucket)->prev = control;
    *bucket = control;
    return control;
}

/* RFC 1928: a client that does not know yet where it will send from says zero. */
static bool lets_in(const struct ss_control *control, const struct ss_addr *client)
{
    const struct ss_addr *from = &control->from;

    if (!ss_ip_equal(&control->client, &client->ip))
        return false;
    /* A request can't say a zone, so none is compared. */
    if (from->ip.family != SS_FAMILY_NONE && !ss_ip_is_any(&from->ip) &&
        (from->ip.family != client->ip.family ||
         memcmp(from->ip.bytes, client->ip.bytes, sizeof from->ip.bytes) != 0))
        return false;
    return from->port == 0 || from->port == client->port;
}

struct ss_control *ss_control_find(struct ss_controls *controls, const struct ss_addr *client)
{
    struct ss_control *any = NULL;

    for (struct ss_control *control = *bucket_of(controls, &client->ip); control != NULL;
         control = control->next) {
        if (!lets_in(control, client))
            continue;
        if (control->from.port != 0)
            return control; /* the one that said where it sends from */
        if (any == NULL)
            any = control;
    }
    return any;
}

/* Of several clients at one address nobody can tell whose an association is: as long as one of
 * their connections would let it in, it lives. */
static void hand_on(struct ss_controls *controls, struct ss_association *association)
{
    struct ss_control *other = ss_control_find(controls, &association->client);

    if (other == NULL) {
        ss_association_close(association);
        return;
    }
    ss_control_detach(association);
    ss_control_attach(other, association);
}

void ss_control_close(struct ss_controls *controls, struct ss_control *control)
{
    if (control == NULL)
        return;
    if (control->prev != NULL)
        control->prev->next = control->next;
    else
        *bucket_of(controls, &control->client) = control->next;
    if (control->next != NULL)
        control->next->prev = control->prev;
    while (control->associations != NULL)
        hand_on(controls, control->associations);
    ss_pool_release(controls->pool, control);
}

void ss_control_attach(struct ss_control *control, struct ss_association *association)
{
    association->control = control;
    association->control_prev = NULL;
    association->control_next = control->associations;
    if (control->associations != NULL)
        control->associations->control_prev = association;
    control->associations = association;
}

void ss_control_detach(struct ss_association *association)
{
    struct ss_control *control = association->control;

    if (control == NULL)
        return;
    if (association->control_prev != NULL)
        association->control_prev->control_next = association->control_next;
    else
        control->associations = association->control_next;
    if (association->control_next != NULL)
        association->control_next->control_prev = association->control_prev;
    association->control = NULL;
}
