#!/bin/sh
# sbom.sh TARGET - prints the parts of the self-contained programs for TARGET as SPDX 2.3: Lode, the libraries of
# deps/dist/sources.txt that this target has, the grammars of deps/grammars. SOURCE_DATE_EPOCH is the time it says.
set -eu
cd "$(dirname "$0")/../.."
target=$1
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
modules=build/dist/src/grammars/node_modules

# name, version, licence (spaces as _), purl, SHA-256 of the package or -
parts() {
  echo "lode $version Apache-2.0 pkg:generic/lode@$version -"
  tools/dist/parts.sh "$target"
  sed -n 's/^ *"\([^"]*tree-sitter[^"]*\)": "\([0-9][^"]*\)",*$/\1 \2/p' deps/grammars/package.json | while read -r name own; do
    licence=$(sed -n 's/^ *"license": *"\(.*\)".*/\1/p' "$modules/$name/package.json" | head -n 1 | tr ' ' _)
    echo "$name $own ${licence:-NOASSERTION} pkg:npm/$(echo "$name" | sed 's/@/%40/')@$own -"
    [ "$name" != tree-sitter ] || echo "tree-sitter-icu $own Unicode-DFS-2016 pkg:npm/tree-sitter@$own -" # headers of ICU inside
  done
}

parts | awk -v target="$target" -v version="$version" -v created="$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)" '
  function id(name) { gsub(/[^A-Za-z0-9.]+/, "-", name); sub(/^-/, "", name); return "SPDXRef-" name }
  function pair(key, value) { return "\"" key "\": \"" value "\"" }
  BEGIN {
    print "{\n " pair("spdxVersion", "SPDX-2.3") ",\n " pair("dataLicense", "CC0-1.0") ",\n " pair("SPDXID", "SPDXRef-DOCUMENT") ","
    print " " pair("name", "lode-" version "-" target) ",\n " pair("documentNamespace", "urn:lode:sbom:" version ":" target) ","
    print " \"creationInfo\": {" pair("created", created) ", \"creators\": [\"Tool: tools/dist/sbom.sh\"]},\n \"packages\": ["
  }
  {
    licence = $3
    gsub(/_/, " ", licence)
    printf "%s  {%s, %s, %s,\n", (NR > 1 ? ",\n" : ""), pair("SPDXID", id($1)), pair("name", $1), pair("versionInfo", $2)
    printf "   %s, \"filesAnalyzed\": false, %s,\n", pair("downloadLocation", "NOASSERTION"), pair("copyrightText", "NOASSERTION")
    printf "   %s, %s,\n", pair("licenseConcluded", licence), pair("licenseDeclared", licence)
    if ($5 != "-") printf "   \"checksums\": [{%s, %s}],\n", pair("algorithm", "SHA256"), pair("checksumValue", $5)
    printf "   \"externalRefs\": [{%s, %s, %s}]}", pair("referenceCategory", "PACKAGE-MANAGER"), pair("referenceType", "purl"),
      pair("referenceLocator", $4)
    if (NR > 1) contained = contained ",\n  {" pair("spdxElementId", "SPDXRef-lode") ", " pair("relationshipType", "CONTAINS") ", " \
      pair("relatedSpdxElement", id($1)) "}"
  }
  END {
    print "],\n \"relationships\": [\n  {" pair("spdxElementId", "SPDXRef-DOCUMENT") ", " pair("relationshipType", "DESCRIBES") ", " \
      pair("relatedSpdxElement", "SPDXRef-lode") "}" contained "]\n}"
  }'
