/* Capabilities of Linux, by the system calls themselves: two calls are not worth a library. */
#include "sys/rights.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef PR_CAP_AMBIENT
#define PR_CAP_AMBIENT           47
#define PR_CAP_AMBIENT_CLEAR_ALL 4
#endif

#define BIT(capability) (UINT64_C(1) << (capability))

static enum ss_status system_status(void)
{
    return errno == EPERM ? SS_ERR_PERMISSION : SS_ERR_IO;
}

enum ss_status ss_rights_hold(void)
{
    return prctl(PR_SET_KEEPCAPS, 1L, 0L, 0L, 0L) == 0 ? SS_OK : system_status();
}

static enum ss_status get(struct __user_cap_data_struct sets[2])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return syscall(SYS_capget, &header, sets) == 0 ? SS_OK : system_status();
}

static enum ss_status set(const struct __user_cap_data_struct sets[2])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return syscall(SYS_capset, &header, sets) == 0 ? SS_OK : system_status();
}

static bool kernel_is_since(unsigned major, unsigned minor)
{
    struct utsname name;
    unsigned own_major, own_minor;

    if (uname(&name) != 0 || sscanf(name.release, "%u.%u", &own_major, &own_minor) != 2)
        return false;
    return own_major > major || (own_major == major && own_minor >= minor);
}

/* CAP_NET_RAW is the smaller of the two that allow most of it: the other can rewrite the firewall.
 */
static uint64_t capabilities(unsigned rights, uint64_t permitted)
{
    uint64_t small = BIT(CAP_NET_RAW) & permitted, large = BIT(CAP_NET_ADMIN);
    uint64_t wanted = 0;

    if (rights & SS_RIGHT_LOW_PORT)
        wanted |= BIT(CAP_NET_BIND_SERVICE);
    if (rights & SS_RIGHT_MARK)
        wanted |= small != 0 && kernel_is_since(5, 17) ? small : large;
    if (rights & SS_RIGHT_INTERFACE && !kernel_is_since(5, 7))
        wanted |= small;
    if (rights & SS_RIGHT_FOREIGN_ADDRESS && !(wanted & permitted & large))
        wanted |= small != 0 ? small : large;
    return wanted & permitted;
}

enum ss_status ss_rights_reduce(unsigned rights)
{
    struct __user_cap_data_struct sets[2] = {0};
    enum ss_status status = get(sets);
    uint64_t kept;

    if (status != SS_OK)
        return status;
    kept = capabilities(rights, sets[0].permitted | (uint64_t)sets[1].permitted << 32);
    for (int i = 0; i < 2; i++) {
        sets[i].effective = sets[i].permitted = (uint32_t)(kept >> 32 * i);
        sets[i].inheritable = 0;
    }
    /* What ambient rights there were are of the user before; kernels before 4.3 know none. */
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L);
    status = set(sets);
    if (status == SS_OK && prctl(PR_SET_KEEPCAPS, 0L, 0L, 0L, 0L) != 0)
        status = system_status();
    return status;
}
