#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wheel.py TARGET OUT - the wheel `lodekit` for TARGET (MACHINE-linux-gnu.2.17, MACHINE-linux-musl, MACHINE-macos), from what `make dist` has
built: the commands lode and lode-parser as they are, without an interpreter before them; the module `lode` with its library; the model.

The archive is made here, not by a build backend, so that its bytes depend on its contents alone."""
import base64
import hashlib
import io
import json
import os
import sys
import zipfile

from abi import Header

PYTHON = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(PYTHON, "..", "..")
DIST = os.path.join(ROOT, "build", "dist")

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


def tags_of(target):
    """The platforms of a wheel, as its name has them."""
    machine, system = target.split("-", 1)
    if system == "macos":
        return "macosx_11_0_" + {"aarch64": "arm64"}.get(machine, machine)
    if system == "linux-musl":
        return "musllinux_1_1_" + machine
    return "manylinux_2_17_%s.manylinux2014_%s" % (machine, machine)


def add_module(wheel, header, target):
    for folder, _, files in sorted(os.walk(os.path.join(PYTHON, "lode"))):
        for file in sorted(files):
            if not file.endswith((".py", ".typed")) or file == "_abi.py":
                continue
            path = os.path.join(folder, file)
            wheel.add(os.path.relpath(path, PYTHON), read(path))
    out = io.StringIO()
    Header(header).write(out)
    wheel.add("lode/_abi.py", out.getvalue())
    form = "liblode.%s.dylib" if target.endswith("macos") else "liblode.so.%s"
    wheel.add("lode/" + form % header_value(header, "LODE_ABI"),
              read(DIST, target, "release", form % header_value(header, "LODE_VERSION_TEXT")), 0o755)


def add_programs(wheel, target):
    """Returns the licences of all that is inside, as an expression and as files."""
    # the programs for Linux need no C library, whichever it is
    stage = os.path.join(DIST, "stage", target.replace("-gnu.2.17", "-musl"))
    wheel.add(wheel.data + "scripts/lode", read(stage, "bin", "lode"), 0o755)
    wheel.add(wheel.data + "scripts/lode-parser", read(stage, "lib", "lode", "lode-parser"), 0o755)
    licences, sbom = [], {}
    for folder, _, files in sorted(os.walk(os.path.join(stage, "share"))):
        for file in sorted(files):
            path = os.path.join(folder, file)
            name = os.path.relpath(path, stage)
            if name.startswith("share/doc/lode/licences/"):
                wheel.add(wheel.info + "licenses/" + file, read(path))
                licences.append(file)
            elif name.endswith("sbom.spdx.json"):
                wheel.add(wheel.info + "sboms/" + file, read(path))
                sbom = json.loads(read(path))
            elif not name.startswith("share/doc/"):
                wheel.add(wheel.data + "data/" + name, read(path))
    return " AND ".join(sorted({part["licenseDeclared"] for part in sbom["packages"]})), licences


def metadata(version, expression, licences):
    fields = ["Metadata-Version: 2.4", "Name: lodekit", "Version: " + version, "Summary: " + SUMMARY, "License-Expression: " + expression]
    fields += ["License-File: " + name for name in licences]
    fields += ["Requires-Python: >=3.9", "Description-Content-Type: text/markdown"]
    return "\n".join(fields) + "\n\n" + read(ROOT, "README.md").decode()


def main():
    target, out = sys.argv[1:]
    header = read(ROOT, "include", "lode.h").decode()
    version, tags = header_value(header, "LODE_VERSION_TEXT"), tags_of(target)
    name = "lodekit-" + version
    path = os.path.join(out, "%s-py3-none-%s.whl" % (name, tags))
    wheel = Wheel(path, name)
    add_module(wheel, header, target)
    wheel.add(wheel.info + "METADATA", metadata(version, *add_programs(wheel, target)))
    wheel.add(wheel.info + "entry_points.txt", "[mempalace.backends]\nlode = lode.mempalace:LodeBackend\n")
    wheel.add(wheel.info + "WHEEL", "Wheel-Version: 1.0\nGenerator: lode\nRoot-Is-Purelib: false\n" +
              "".join("Tag: py3-none-%s\n" % tag for tag in tags.split(".")))
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
