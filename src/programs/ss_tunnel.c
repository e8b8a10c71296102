/* ss-tunnel: one local port that leads to one target through a Shadowsocks server. */
#include "service/service.h"

int main(int argc, char **argv)
{
    return ss_service_main(SS_PROGRAM_TUNNEL, argc, argv);
}
