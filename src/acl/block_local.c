/* The built-in list of what is local to a server. docs/acl/block-local.acl is the same as a file.
 */
#include "acl/acl.h"

/* IPv4 addresses inside IPv6 ones are listed where a gateway could take them there (RFC 6052);
 * mapped ones are IPv4 anyway. */
static const char text[] = "[outbound_block_list]\n"
                           "0.0.0.0/8\n"
                           "10.0.0.0/8\n"
                           "100.64.0.0/10\n"
                           "127.0.0.0/8\n"
                           "169.254.0.0/16\n"
                           "172.16.0.0/12\n"
                           "192.0.0.0/24\n"
                           "192.168.0.0/16\n"
                           "198.18.0.0/15\n"
                           "224.0.0.0/4\n"
                           "240.0.0.0/4\n"
                           "::/96\n"
                           "64:ff9b::10.0.0.0/104\n"
                           "64:ff9b::127.0.0.0/104\n"
                           "64:ff9b::169.254.0.0/112\n"
                           "64:ff9b::172.16.0.0/108\n"
                           "64:ff9b::192.168.0.0/112\n"
                           "fc00::/7\n"
                           "fe80::/10\n"
                           "fec0::/10\n"
                           "ff00::/8\n"
                           "||localhost\n";

struct ss_view ss_acl_block_local_text(void)
{
    return (struct ss_view){(const uint8_t *)text, sizeof text - 1};
}
