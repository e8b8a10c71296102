#!/usr/bin/env python3
"""The layers: a folder of src includes only itself and what stands below it, and outside headers
stay where docs/design.md puts them.

    check_layers.py [--source DIR]
"""
import argparse
import os
import re
import sys

MAY_INCLUDE = {
    "programs": "service",
    "service": "control relay config sys resolver acl codec crypto proto net base",
    "relay": "codec crypto acl proto resolver net base",
    "config": "codec crypto proto base",
    "control": "config crypto base",
    "sys": "base",
    "resolver": "crypto net base",
    "codec": "crypto proto base",
    "acl": "base",
    "net": "base",
    "crypto": "base",
    "proto": "base",
    "base": "",
}
# Header name (as it begins) -> the folders whose .c files, and headers for the folder alone, may use
# it.
OUTSIDE = {
    "uv.h": "net resolver relay service",
    "ares": "resolver",
    "jansson": "config control",
    "mbedtls/": "crypto",
    "sodium": "crypto",
    "intel-ipsec-mb": "crypto",
    "openssl/": "crypto",
    "pcre2": "acl",
}
# Public headers may show libuv where handles lie in structs or a loop is handed over.
IN_HEADERS = {"uv.h": "net resolver relay service"}

# The pure layers: bytes and time are handed in. base asks the system for pages, locks and the time
# stamp of a log line; crypto for locks.
PURE = "proto codec acl"
SYSTEM = re.compile(r"sys/socket|netinet/|netdb|sys/epoll|poll\.h|time\.h|unistd|fcntl")

# The log's words and the folder of the generated version.
GENERATED = {"base/version.h"}


def includes(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = re.match(r'\s*#\s*include\s+([<"])([^">]+)[">]', line)
            if found:
                yield number, found.group(1) == '"', found.group(2)


def faults(source):
    for folder in sorted(MAY_INCLUDE):
        root = os.path.join(source, folder)
        if not os.path.isdir(root):
            continue
        allowed = {folder, *MAY_INCLUDE[folder].split()}
        for name in sorted(os.listdir(root)):
            if not name.endswith((".c", ".h")):
                continue
            ours_first = None
            for number, ours, header in includes(os.path.join(root, name)):
                where = "%s/%s:%d" % (folder, name, number)
                if ours_first is None:
                    ours_first = header
                if ours:
                    other = header.split("/")[0]
                    if "/" not in header:
                        yield where, 'includes are rooted at src: "%s"' % header
                    elif other not in allowed:
                        yield where, "%s may not include %s" % (folder, header)
                    elif header.endswith("_internal.h") and other != folder:
                        yield where, "%s is for its folder alone" % header
                    elif header not in GENERATED and not os.path.exists(
                            os.path.join(source, header)):
                        yield where, "%s does not exist" % header
                    continue
                for prefix, folders in OUTSIDE.items():
                    if header.startswith(prefix):
                        is_public = name.endswith(".h") and not name.endswith("_internal.h")
                        places = IN_HEADERS.get(prefix, "") if is_public else folders
                        if folder not in places.split():
                            yield where, "<%s> has no place here" % header
                if folder in PURE.split() and SYSTEM.search(header):
                    yield where, "<%s> in a pure layer" % header
            own = "%s/%s.h" % (folder, name[:-2])
            if name.endswith(".c") and os.path.exists(os.path.join(source, own)) \
                    and ours_first != own:
                yield folder + "/" + name, "does not include its own header first"


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    options.add_argument("--source", default=os.path.join(here, "..", "src"))
    found = list(faults(options.parse_args().source))
    for where, what in found:
        print("%s: %s" % (where, what))
    print("%d faults" % len(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
