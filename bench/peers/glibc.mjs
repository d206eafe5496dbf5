// glibc.mjs - makes Chroma's native binding loadable where the C library is older than the one it was linked with.
//
// The binding wants GLIBC_2.38 and 2.39 for four symbols: two are weak already, the other two are the C23 names of
// sscanf and strtol, which glibc.c supplies on top of the old ones. The loader refuses a library because of the
// *version* alone, unless the version is marked weak: so a copy gets that flag (VER_FLG_WEAK, in .gnu.version_r) for
// versions that this system lacks. Needed on Debian 12; a newer system loads the binding as it is.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const SHT_GNU_VERNEED = 0x6ffffffe;
const VER_FLG_WEAK = 2;
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);

const parse = (version) => version.split(".").map(Number);
const newer = ([a, b], [c, d]) => a > c || (a === c && b > d);

function sections(elf) {
  if (elf.readUInt32BE(0) !== 0x7f454c46 || elf[4] !== 2 || elf[5] !== 1) throw new Error("not a 64-bit little-endian ELF file");
  const at = Number(elf.readBigUInt64LE(0x28)), size = elf.readUInt16LE(0x3a), count = elf.readUInt16LE(0x3c);
  return Array.from({ length: count }, (_, i) => ({
    type: elf.readUInt32LE(at + i * size + 4),
    offset: Number(elf.readBigUInt64LE(at + i * size + 24)),
    link: elf.readUInt32LE(at + i * size + 40),
  }));
}

// Marks every needed GLIBC_x.y newer than `have` as weak, in place. Returns how many.
function weaken(elf, have) {
  const all = sections(elf);
  let marked = 0;
  for (const section of all.filter((s) => s.type === SHT_GNU_VERNEED)) {
    const strings = all[section.link].offset;
    for (let need = section.offset, next = 1; next !== 0; need += next) {
      next = elf.readUInt32LE(need + 12);
      let aux = need + elf.readUInt32LE(need + 8);
      for (let left = elf.readUInt16LE(need + 2); left > 0; left--, aux += elf.readUInt32LE(aux + 12)) {
        const name = strings + elf.readUInt32LE(aux + 8);
        const version = /^GLIBC_(\d+\.\d+)$/.exec(elf.toString("latin1", name, elf.indexOf(0, name)));
        if (!version || !newer(parse(version[1]), have)) continue;
        elf.writeUInt16LE(elf.readUInt16LE(aux + 4) | VER_FLG_WEAK, aux + 4);
        marked++;
      }
    }
  }
  return marked;
}

// The binding to load, and what to preload for it ("" for nothing). Files that must be made go to `work`.
export function loadable(work) {
  const arch = process.arch === "x64" ? "linux-x64-gnu" : "linux-arm64-gnu";
  const original = createRequire(import.meta.url).resolve(`chromadb-js-bindings-${arch}`);
  const have = parse(process.report.getReport().header.glibcVersionRuntime ?? "0.0");
  const elf = fs.readFileSync(original);
  if (weaken(elf, have) === 0) return { binding: original, preload: "" };
  const binding = path.join(path.resolve(work), "chroma.node"), preload = path.join(path.resolve(work), "glibc.so");
  fs.mkdirSync(work, { recursive: true });
  const [cc, ...words] = (process.env.CC || "cc").split(/\s+/); // it may be "ccache gcc"
  execFileSync(cc, [...words, "-shared", "-fPIC", "-O2", "-o", preload, path.join(here, "glibc.c")]);
  fs.writeFileSync(binding, elf);
  return { binding, preload };
}
