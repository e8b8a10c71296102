/* ss-redir: what the firewall redirects to it reaches its targets through a Shadowsocks server. */
#include "service/service.h"

int main(int argc, char **argv)
{
    return ss_service_main(SS_PROGRAM_REDIR, argc, argv);
}
