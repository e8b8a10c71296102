/* ss-manager: many ports and users, which come and go on command. */
#include "service/service.h"

int main(int argc, char **argv)
{
    return ss_service_main(SS_PROGRAM_MANAGER, argc, argv);
}
