# Untried template: a Nix expression. A build has no network, so it has no grammars unless build/grammars is part of the source.
{ pkgs ? import <nixpkgs> { } }:
pkgs.stdenv.mkDerivation {
  pname = "lode";
  version = "@VERSION@";
  src = ../..;
  nativeBuildInputs = [ pkgs.pkg-config ];
  buildInputs = [ pkgs.sqlite pkgs.pcre2 pkgs.utf8proc pkgs.curl pkgs.libmicrohttpd ];
  makeFlags = [ "PREFIX=${placeholder "out"}" "WERROR=" ];
  installTargets = [ "install-files" ];
  meta.license = pkgs.lib.licenses.asl20;
}
