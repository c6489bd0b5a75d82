"""Finds CPython 3.8-3.13 installations that Triton's Python backend can embed.

Prints one line for each, best first: VERSION <tab> LIBRARY-FOLDER <tab> PREFIX. The folder is empty
where the dynamic linker finds the library by itself. 3.13 needs no shared library, since the
wheel brings its own, only the standard library of an installed Python.
"""

import glob
import os
import re
import subprocess
import sys

MINORS = (12, 11, 10, 9, 8, 13)

PROBE = """
import os, sys, sysconfig
g = sysconfig.get_config_var
odd = g("Py_DEBUG") or g("Py_GIL_DISABLED") or sys.implementation.name != "cpython"
if not odd:
    print(*sys.version_info[:2], g("LIBDIR") or "", sysconfig.get_path("stdlib"), sys.base_prefix, sep="\\t")
"""


def ldconfig():
    """Versions whose library the dynamic linker knows."""
    known = set()
    for tool in ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            text = subprocess.run([tool, "-p"], capture_output=True, text=True).stdout
        except OSError:
            continue
        known.update(int(m) for m in re.findall(r"libpython3\.(\d+)\.so\.1\.0 .*x86-64", text))
        break
    return known


def interpreters():
    yield sys.executable
    for minor in MINORS:
        yield f"python3.{minor}"
    yield "/usr/bin/python3"
    roots = {os.environ.get("PYENV_ROOT", ""), os.path.expanduser("~/.pyenv")} - {""}
    for root in sorted(roots):
        for minor in MINORS:
            yield from sorted(glob.glob(f"{root}/versions/3.{minor}.*/bin/python3"), reverse=True)


def probe(python):
    try:
        result = subprocess.run(
            [python, "-I", "-c", PROBE], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    fields = result.stdout.strip("\n").split("\t")
    if result.returncode != 0 or len(fields) != 5:
        return None
    major, minor, libdir, stdlib, prefix = fields
    if major != "3" or not os.path.isfile(os.path.join(stdlib, "os.py")):
        return None
    return int(minor), libdir, prefix


def main():
    linked = ldconfig()
    seen = set()

    def show(minor, folder, prefix):
        line = (f"3.{minor}", folder, prefix)
        if line not in seen:
            seen.add(line)
            print(*line, sep="\t")

    for python in interpreters():
        found = probe(python)
        if found is None or found[0] not in MINORS:
            continue
        minor, libdir, prefix = found
        if minor == 13:
            show(minor, "", prefix)
        elif os.path.isfile(os.path.join(libdir, f"libpython3.{minor}.so.1.0")):
            show(minor, libdir, prefix)
        elif minor in linked:
            show(minor, "", prefix)
    # A library with its standard library, but without an interpreter (Debian's libpython3.x).
    for minor in MINORS:
        for prefix in ("/usr", "/usr/local"):
            for lib in ("lib", "lib64"):
                if minor in linked and os.path.isfile(f"{prefix}/{lib}/python3.{minor}/os.py"):
                    show(minor, "", prefix)


main()
