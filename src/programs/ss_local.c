/* ss-local: a SOCKS5 server that reaches its targets through a Shadowsocks server. */
#include "service/service.h"

int main(int argc, char **argv)
{
    return ss_service_main(SS_PROGRAM_LOCAL, argc, argv);
}
