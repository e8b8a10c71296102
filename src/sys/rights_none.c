/* A system whose rights are root's, or none. */
#include "sys/rights.h"

enum ss_status ss_rights_hold(void)
{
    return SS_ERR_UNSUPPORTED;
}

enum ss_status ss_rights_reduce(unsigned rights)
{
    (void)rights;
    return SS_OK;
}
