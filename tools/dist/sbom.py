#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py TARGET - prints the parts of the self-contained programs for TARGET as SPDX 2.3: Lode, the libraries of
deps/dist/sources.txt, the grammars of deps/grammars. SOURCE_DATE_EPOCH is the time it says."""
import datetime
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODULES = os.path.join(ROOT, "build", "dist", "src", "grammars", "node_modules")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def linked_parts():
    """name, version, licence, purl, SHA-256 of the package"""
    for line in read("deps", "dist", "sources.txt").splitlines():
        if not line or line.startswith("#"):
            continue
        kind, package, version, digest, name, own, licence = line.split()
        if kind.startswith("pip/"):
            if kind.endswith("/" + os.uname().machine):
                yield "musl, libunwind and compiler-rt of zig", own, licence, "pkg:pypi/%s@%s" % (package, version), digest
            continue
        where = {"crate": "pkg:cargo/", "debian": "pkg:deb/debian/"}[kind] + package.split("/")[-1]
        yield name, own, licence, "%s@%s" % (where, version.replace("+", "%2B").replace("~", "%7E")), digest
    wanted = json.loads(read("deps", "grammars", "package.json"))["dependencies"]
    for name, version in sorted(wanted.items()):
        licence = "NOASSERTION"
        manifest = os.path.join(MODULES, name, "package.json")
        if os.path.exists(manifest):
            with open(manifest, encoding="utf-8") as file:
                licence = json.load(file).get("license", licence)
        yield name, version, licence, "pkg:npm/%s@%s" % (name.replace("@", "%40"), version), None


def package(name, version, licence, purl, digest):
    entry = {
        "SPDXID": "SPDXRef-" + re.sub("[^A-Za-z0-9.]+", "-", name).strip("-"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }
    if digest:
        entry["packageFileName"] = purl.split("/", 1)[1]
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": digest}]
    return entry


def main():
    target = sys.argv[1]
    version = re.search(r'LODE_VERSION_TEXT "([^"]+)"', read("include", "lode.h")).group(1)
    lode = package("lode", version, "Apache-2.0", "pkg:generic/lode@" + version, None)
    parts = [package(*part) for part in linked_parts()]
    when = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    json.dump({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "lode-%s-%s" % (version, target),
        "documentNamespace": "urn:lode:sbom:%s:%s" % (version, target),
        "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: tools/dist/sbom.py"]},
        "packages": [lode] + parts,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": lode["SPDXID"]}] +
                         [{"spdxElementId": lode["SPDXID"], "relationshipType": "CONTAINS",
                           "relatedSpdxElement": part["SPDXID"]} for part in parts],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
