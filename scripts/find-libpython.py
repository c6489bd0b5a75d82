"""Finds a CPython that Triton's Python backend can embed: 3.8-3.12 with its shared library.

Prints VERSION <tab> LIBRARY-FOLDER <tab> PREFIX of the first that fits, or nothing; the folder is "-"
where the dynamic linker finds the library by itself. An argument (3.x) asks for that version.
3.13 is left out: it needs numpy 2, with which this Python backend answers with empty tensors.
"""

import glob
import os
import re
import subprocess
import sys

MINORS = (12, 11, 10, 9, 8)

PROBE = """
import os, sys, sysconfig
get = sysconfig.get_config_var
if sys.implementation.name == "cpython" and not get("Py_DEBUG"):
    print(*sys.version_info[:2], get("LIBDIR") or "", sysconfig.get_path("stdlib"), sys.base_prefix, sep="\\t")
"""


def linked():
    """Minor versions whose library the dynamic linker knows."""
    for tool in ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            text = subprocess.run([tool, "-p"], capture_output=True, text=True).stdout
        except OSError:
            continue
        return {int(m) for m in re.findall(r"libpython3\.(\d+)\.so\.1\.0 .*x86-64", text)}
    return set()


def interpreters():
    yield sys.executable
    yield "/usr/bin/python3"
    for minor in MINORS:
        yield f"python3.{minor}"
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for minor in MINORS:
        yield from sorted(glob.glob(f"{root}/versions/3.{minor}.*/bin/python3"), reverse=True)


def probe(python):
    """(minor version, library folder, prefix) of an interpreter with its standard library."""
    try:
        result = subprocess.run(
            [python, "-I", "-c", PROBE], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    fields = result.stdout.strip("\n").split("\t")
    if result.returncode != 0 or len(fields) != 5 or fields[0] != "3":
        return None
    _, minor, libdir, stdlib, prefix = fields
    if not os.path.isfile(os.path.join(stdlib, "os.py")):
        return None
    return int(minor), libdir, prefix


def candidates():
    known = linked()
    for python in interpreters():
        found = probe(python)
        if found is None or found[0] not in MINORS:
            continue
        minor, libdir, prefix = found
        if os.path.isfile(os.path.join(libdir, f"libpython3.{minor}.so.1.0")):
            yield minor, libdir, prefix
        elif minor in known:
            yield minor, "-", prefix
    # A library with its standard library, but without an interpreter (Debian's libpython3.x).
    for minor in MINORS:
        for prefix in ("/usr", "/usr/local"):
            for lib in ("lib", "lib64"):
                if minor in known and os.path.isfile(f"{prefix}/{lib}/python3.{minor}/os.py"):
                    yield minor, "-", prefix


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for minor, folder, prefix in candidates():
        if wanted in ("", f"3.{minor}"):
            print(f"3.{minor}", folder, prefix, sep="\t")
            return


main()
