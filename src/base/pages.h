/*
 * Address space from the system: reserved at once, resident where it is touched, given back in
 * whole pages. The only place of base that asks the system for memory in its own way.
 */
#ifndef SS_BASE_PAGES_H
#define SS_BASE_PAGES_H

#include <stddef.h>

/* Bytes of a page, a power of two. */
size_t ss_pages_size(void);

/* `len` rounded up to whole pages; 0 when that is beyond what a size can say. */
size_t ss_pages_round(size_t len);

/*
 * Reserves `len` bytes that read as zero, aligned to a page, without backing store and never in
 * huge pages (one touched byte would make two megabytes resident). NULL when the system refuses.
 */
void *ss_pages_reserve(size_t len);

/* Ends a reservation, with the length it was made with. NULL is fine. */
void ss_pages_release(void *start, size_t len);

/* Gives the backing of whole pages back; they stay reserved and read as zero again. */
void ss_pages_discard(void *start, size_t len);

#endif
