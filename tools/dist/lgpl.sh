#!/bin/sh
# lgpl.sh OUT - the source of libmicrohttpd as the self-contained programs have it, with what it is built with: the LGPL wants it beside them
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^#define LODE_VERSION_TEXT "\(.*\)"/\1/p' include/lode.h)
name=lode-$version-libmicrohttpd
work=build/dist/lgpl
rm -rf "$work"
mkdir -p "$work/$name"
trap 'rm -rf "$work"' EXIT
cp -r build/dist/src/libmicrohttpd "$work/$name/libmicrohttpd"
install -m 644 tools/dist/libs.mk tools/dist/config/MHD_config.h deps/dist/sources.txt "$work/$name/"
tools/dist/pack.sh "$work" "$name" "$1/$name.tar.gz"
