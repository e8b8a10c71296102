"""What programs weigh, and what they are linked with."""

import os
import re
import subprocess
import tempfile


def stripped(path):
    """Bytes of a program once strip(1) has been over it."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "program")
        subprocess.run(["strip", "-o", out, path], check=True, stdin=subprocess.DEVNULL)
        return os.path.getsize(out)


def libraries(path):
    """The shared libraries that it names itself."""
    text = subprocess.run(["readelf", "-d", path], check=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def sections(path):
    """Bytes of each section that is loaded."""
    text = subprocess.run(["size", "-A", path], check=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True).stdout
    return {name: int(size) for name, size in re.findall(r"^(\.\S+)\s+(\d+)\s+[1-9]", text, re.M)}
