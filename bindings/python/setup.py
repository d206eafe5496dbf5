"""Builds the wheel: the interface is made from the header, the shared library is put inside. `make wheel` calls it."""
import os
import re
import shutil
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
HEADER = os.path.join(ROOT, "include", "lode.h")
NAME = "liblode.%s.dylib" if sys.platform == "darwin" else "liblode.so.%s"


def need(path):
    if not os.path.exists(path):
        raise SystemExit("lode: %s is missing: run `make` in the checkout first, or install the wheel that `make dist` builds" % path)
    return path


with open(need(HEADER), encoding="utf-8") as file:
    text = file.read()
VERSION = re.search(r'LODE_VERSION_TEXT "([^"]+)"', text).group(1)
ABI = re.search(r"LODE_ABI (\d+)", text).group(1)
LIBRARY = need(os.environ.get("LODE_LIBRARY", os.path.join(ROOT, "build", "release", NAME % ABI)))


class Build(build_py):
    def run(self):
        super().run()
        sys.path.insert(0, HERE)
        from abi import Header
        target = os.path.join(self.build_lib, "lode")
        header = Header(text)
        with open(LIBRARY, "rb") as library:
            names = library.read()
        if any(name.encode() + b"\0" not in names for name, _, _ in header.functions):
            raise SystemExit("lode: %s is older than %s: run `make` in the checkout first" % (LIBRARY, HEADER))
        with open(os.path.join(target, "_abi.py"), "w", encoding="utf-8") as out:
            header.write(out)
        shutil.copyfile(LIBRARY, os.path.join(target, NAME % ABI))


class Binary(Distribution):
    """Holds a library of this platform, and no code of an interpreter's own."""

    def has_ext_modules(self):
        return True


options = {}
try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    try:
        from wheel.bdist_wheel import bdist_wheel
    except ImportError:
        bdist_wheel = None
if bdist_wheel is not None:
    class Wheel(bdist_wheel):
        def get_tag(self):
            return ("py3", "none") + super().get_tag()[2:]
    options["bdist_wheel"] = Wheel

setup(version=VERSION, cmdclass=dict(options, build_py=Build), distclass=Binary)
