/* What an association keeps of a datagram session: IDs, windows and cipher contexts. */
#include "codec/packet.h"

#include <assert.h>

#include "codec/codec_internal.h"
#include "crypto/random.h"
#include "crypto/secret.h"

/* Under the ChaCha methods all datagrams have the key of the codec. */
static bool has_contexts(const struct ss_profile *profile)
{
    return profile->packet == &ss_packet_2022;
}

size_t ss_packet_link_size(const struct ss_profile *profile)
{
    size_t size = SS_CONTEXTS_OFFSET(sizeof(struct ss_packet_link));

    if (!profile->packet->has_sessions)
        return 0;
    return has_contexts(profile) ? size + ss_contexts_size(profile->packet_aead, NULL) : size;
}

size_t ss_packet_link_size_max(void)
{
    return SS_CONTEXTS_OFFSET(sizeof(struct ss_packet_link)) + 2 * SS_AEAD_CONTEXT_MAX;
}

struct ss_view ss_packet_key(const struct ss_packet_codec *codec, const struct ss_user *user)
{
    const uint8_t *key = user != NULL ? ss_user_keys_of(user)->key : codec->profile->key;

    return (struct ss_view){key, codec->profile->method->key_len};
}

const struct ss_user_keys ss_packet_nobody = {.user = {.name = ""}};

static struct ss_view id_view(const uint8_t *id)
{
    return (struct ss_view){id, SS_SESSION_ID_LEN};
}

static enum ss_status key_server(struct ss_packet_link *link, struct ss_packet_codec *codec,
                                 struct ss_packet_session *session)
{
    struct ss_view key = ss_packet_key(codec, session->user);
    enum ss_status status = ss_key_sealing_2022(&link->contexts, key, id_view(session->own_id));

    if (status == SS_OK)
        status = ss_key_opening_2022(&link->contexts, key, id_view(session->id));
    if (status == SS_OK && session->user != NULL) {
        status = ss_block_key_init(&link->header, SS_BLOCK_ENCRYPT, key.ptr, key.len);
        link->has_header = true;
    }
    return status;
}

enum ss_status ss_packet_link_begin(struct ss_packet_link *link, struct ss_packet_codec *codec,
                                    struct ss_packet_session *session)
{
    const struct ss_profile *profile = codec->profile;
    uint8_t *memory = (uint8_t *)link + SS_CONTEXTS_OFFSET(sizeof *link);
    enum ss_status status = SS_OK;

    assert(link->codec == NULL && profile->packet->has_sessions);
    assert((session != NULL) == (codec->role == SS_CODEC_SERVER));
    assert(session == NULL || session->link == NULL);
    link->codec = codec;
    link->session = session;
    if (session != NULL)
        session->link = link;
    else
        ss_random_bytes(link->id, sizeof link->id);
    if (has_contexts(profile)) {
        status = ss_contexts_begin(&link->contexts, memory, profile->packet_aead, NULL);
        if (status == SS_OK && session == NULL)
            status =
                ss_key_sealing_2022(&link->contexts, ss_packet_key(codec, NULL), id_view(link->id));
        else if (status == SS_OK && (session->user == NULL || session->user->next == NULL))
            status = key_server(link, codec, session);
    }
    if (status != SS_OK)
        ss_packet_link_end(link);
    return status;
}

void ss_packet_link_end(struct ss_packet_link *link)
{
    struct ss_contexts kept;

    if (link->codec == NULL)
        return;
    if (link->session != NULL) {
        link->session->link = NULL;
        link->session->owner = NULL;
    }
    ss_contexts_end(&link->contexts);
    kept = link->contexts;
    ss_wipe(link, sizeof *link);
    link->contexts = kept;
}

void ss_packet_link_retire(struct ss_packet_link *link)
{
    ss_packet_link_end(link);
    ss_contexts_retire(&link->contexts);
    ss_wipe(link, sizeof *link);
}
