/* ss-server: a Shadowsocks server. */
#include "service/service.h"

int main(int argc, char **argv)
{
    return ss_service_main(SS_PROGRAM_SERVER, argc, argv);
}
