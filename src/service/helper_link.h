/* The helper's notices on a loop: each goes to whom its number belongs to. For this folder. */
#ifndef SS_SERVICE_HELPER_LINK_H
#define SS_SERVICE_HELPER_LINK_H

#include <stdint.h>

#include <uv.h>

#include "base/status.h"
#include "sys/helper.h"

struct ss_helper_link;

/* A descriptor in the notice belongs to the callee. */
typedef void ss_helper_notice_fn(void *owner, const struct ss_notice *notice);

/* The helper is gone, and no notice comes any more. */
typedef void ss_helper_gone_fn(void *owner);

/* The helper is borrowed, and outlives the link. SS_ERR_MEMORY, SS_ERR_IO. */
SS_CHECKED enum ss_status ss_helper_link_new(struct ss_helper_link **out, struct ss_helper *helper,
                                             uv_loop_t *loop, ss_helper_gone_fn *gone, void *owner);

/* No callback comes after this. The loop must run once more. NULL is fine. */
void ss_helper_link_close(struct ss_helper_link *link);

/* A number for a child or a request of the caller's; 0 when memory is out. */
SS_CHECKED uint32_t ss_helper_link_add(struct ss_helper_link *link, ss_helper_notice_fn *notice,
                                       void *owner);

/* What still comes for it is dropped. A child that lives is not ended by this. */
void ss_helper_link_remove(struct ss_helper_link *link, uint32_t id);

/* The helper, for a request: what that takes in is told by the loop. */
struct ss_helper *ss_helper_link_ask(struct ss_helper_link *link);

/* Waits for the next notice and tells it, without the loop. SS_ERR_TIMEOUT, SS_ERR_RESET. */
SS_CHECKED enum ss_status ss_helper_link_wait(struct ss_helper_link *link, uint32_t timeout_ms);

#endif
