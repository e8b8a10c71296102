/* A system without splice. */
#include "net/splice.h"

enum ss_status ss_splice_move(struct ss_splice *splice, const uv_tcp_t *source,
                              const uv_tcp_t *sink, size_t room, struct ss_spliced *moved)
{
    (void)splice;
    (void)source;
    (void)sink;
    (void)room;
    *moved = (struct ss_spliced){0};
    return SS_ERR_UNSUPPORTED;
}

bool ss_splice_take(struct ss_splice *splice, uint8_t *bytes, size_t left)
{
    (void)splice;
    (void)bytes;
    (void)left;
    return false;
}

void ss_splice_close(struct ss_splice *splice)
{
    (void)splice;
}
