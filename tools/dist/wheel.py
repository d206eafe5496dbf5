#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wheel.py MACHINE OUT - the wheel `lodekit` for Linux on MACHINE (x86_64, aarch64), from what `make dist` has built: the commands lode
and lode-parser as they are, without an interpreter before them; the module `lode` with its library for glibc and for musl; the model.

The archive is made here, not by a build backend, so that its bytes depend on its contents alone."""
import base64
import hashlib
import io
import os
import sys
import zipfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DIST = os.path.join(ROOT, "build", "dist")
PYTHON = os.path.join(ROOT, "bindings", "python")
sys.path.insert(0, PYTHON)
from abi import Header  # noqa: E402

SUMMARY = "Semantic code search and an embedded vector database that do not crash: the programs lode, the module lode"


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def header_value(text, name):
    line = next(line for line in text.splitlines() if line.startswith("#define " + name + " "))
    return line.split()[2].strip('"')


class Wheel:
    def __init__(self, path, name):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info = name + ".dist-info/"
        self.data = name + ".data/"
        self.record = []

    def add(self, name, data, mode=0o644):
        if isinstance(data, str):
            data = data.encode()
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        self.archive.writestr(entry, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(data)))

    def close(self):
        self.record.append(self.info + "RECORD,,")
        lines = "\n".join(self.record) + "\n"
        self.add(self.info + "RECORD", lines)
        self.archive.close()


def add_module(wheel, header, machine, abi, version):
    for folder, _, files in sorted(os.walk(os.path.join(PYTHON, "lode"))):
        for file in sorted(files):
            if not file.endswith((".py", ".typed")) or file == "_abi.py":
                continue
            path = os.path.join(folder, file)
            wheel.add(os.path.relpath(path, PYTHON), read(path))
    out = io.StringIO()
    Header(header).write(out)
    wheel.add("lode/_abi.py", out.getvalue())
    for libc, target in (("", "-linux-gnu.2.17"), ("-musl", "-linux-musl")):
        wheel.add("lode/liblode%s.so.%s" % (libc, abi),
                  read(DIST, machine + target, "release", "liblode.so." + version), 0o755)


def add_programs(wheel, machine):
    stage = os.path.join(DIST, "stage", machine + "-linux-musl")
    wheel.add(wheel.data + "scripts/lode", read(stage, "bin", "lode"), 0o755)
    wheel.add(wheel.data + "scripts/lode-parser", read(stage, "lib", "lode", "lode-parser"), 0o755)
    for folder, _, files in sorted(os.walk(os.path.join(stage, "share"))):
        for file in sorted(files):
            path = os.path.join(folder, file)
            name = os.path.relpath(path, stage)
            if name.startswith("share/doc/lode/licences/"):
                wheel.add(wheel.info + "licenses/" + file, read(path))
            elif name.endswith("sbom.spdx.json"):
                wheel.add(wheel.info + "sboms/" + file, read(path))
            elif not name.startswith("share/doc/"):
                wheel.add(wheel.data + "data/" + name, read(path))


def main():
    machine, out = sys.argv[1:]
    header = read(ROOT, "include", "lode.h").decode()
    version, abi = header_value(header, "LODE_VERSION_TEXT"), header_value(header, "LODE_ABI")
    platform = "manylinux_2_17_%s.manylinux2014_%s.musllinux_1_1_%s" % (machine, machine, machine)
    name = "lodekit-" + version
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "%s-py3-none-%s.whl" % (name, platform))
    wheel = Wheel(path, name)
    add_module(wheel, header, machine, abi, version)
    add_programs(wheel, machine)
    wheel.add(wheel.info + "METADATA", "Metadata-Version: 2.1\nName: lodekit\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\n"
              "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n%s" % (version, SUMMARY, read(ROOT, "README.md").decode()))
    wheel.add(wheel.info + "entry_points.txt", "[mempalace.backends]\nlode = lode.mempalace:LodeBackend\n")
    tags = "".join("Tag: py3-none-%s\n" % tag for tag in platform.split("."))
    wheel.add(wheel.info + "WHEEL", "Wheel-Version: 1.0\nGenerator: lode\nRoot-Is-Purelib: false\n" + tags)
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
