#!/usr/bin/env python3
"""All that is tested of ss-manager with real servers, one file after the other.

    test_manager.py --bin build/bin [--workers 2] [unittest's own options]

The files are those of e2e/manager; each runs by itself too.
"""

import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def main():
    if "-h" in sys.argv or "--help" in sys.argv:
        print(__doc__)
        return 0
    failed = []
    for path in sorted(glob.glob(os.path.join(HERE, "e2e", "manager", "test_*.py"))):
        print("== %s" % os.path.basename(path), flush=True)
        status = subprocess.call([sys.executable, path, *sys.argv[1:]])
        if status not in (0, SKIPPED):
            failed.append(os.path.basename(path))
    print("failed: %s" % ", ".join(failed) if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
