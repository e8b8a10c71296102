/* From a member back to the struct that it lies in. */
#ifndef SS_BASE_CONTAINER_H
#define SS_BASE_CONTAINER_H

#include <stddef.h>

#define SS_CONTAINER_OF(member_ptr, type, member) \
    ((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

#endif
