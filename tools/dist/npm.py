#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npm.py OUT MACHINE... - the npm packages: `lodekit`, whose commands start the program of the platform, and one package for each
platform, which npm chooses by its os and cpu. Tarballs depend on their contents alone."""
import gzip
import io
import json
import os
import re
import sys
import tarfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DIST = os.path.join(ROOT, "build", "dist")
CPUS = {"x86_64": "x64", "aarch64": "arm64"}


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def pack(path, files):
    """files: name -> (bytes, mode)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (data, mode) in sorted(files.items()):
            entry = tarfile.TarInfo("package/" + name)
            entry.size, entry.mode, entry.mtime = len(data), mode, 499162500
            tar.addfile(entry, io.BytesIO(data))
    with open(path, "wb") as file:
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
            packed.write(out.getvalue())
    print(path)


def manifest(name, version, more):
    fields = {"name": name, "version": version, "license": "Apache-2.0",
              "description": "Semantic code search and an embedded vector database that do not crash"}
    fields.update(more)
    return (json.dumps(fields, indent=2) + "\n").encode()


def main():
    out, machines = sys.argv[1], sys.argv[2:]
    version = re.search(rb'LODE_VERSION_TEXT "([^"]+)"', read(ROOT, "include", "lode.h")).group(1).decode()
    os.makedirs(out, exist_ok=True)
    for machine in machines:
        stage = os.path.join(DIST, "stage", machine + "-linux-musl")
        name = "lodekit-linux-" + CPUS[machine]
        files = {"package.json": (manifest(name, version, {"os": ["linux"], "cpu": [CPUS[machine]], "preferUnplugged": True}), 0o644)}
        for folder, _, names in os.walk(stage):
            for file in names:
                path = os.path.join(folder, file)
                files[os.path.relpath(path, stage)] = (read(path), 0o755 if os.access(path, os.X_OK) else 0o644)
        pack(os.path.join(out, "%s-%s.tgz" % (name, version)), files)
    launcher = os.path.join(ROOT, "tools", "dist", "npm")
    pack(os.path.join(out, "lodekit-%s.tgz" % version), {
        "package.json": (manifest("lodekit", version, {
            "bin": {"lode": "lode.js"},
            "engines": {"node": ">=14"},
            "optionalDependencies": {"lodekit-linux-" + CPUS[m]: version for m in sorted(CPUS)},
        }), 0o644),
        "lode.js": (read(launcher, "lode.js"), 0o755),
        "README.md": (read(ROOT, "README.md"), 0o644),
        "LICENSE": (read(ROOT, "LICENSE"), 0o644),
    })


if __name__ == "__main__":
    main()
