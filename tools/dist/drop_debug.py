#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drop_debug.py FILE - removes the debug information (of the C library) from an ELF64 program of any machine and keeps its symbol table,
which crash reports take names from. The linker at hand removes both or none, and the strip of this machine may not know the other."""
import os
import struct
import sys

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SHT_SYMTAB, SHF_ALLOC = 2, 2


def main():
    path = sys.argv[1]
    with open(path, "rb") as file:
        data = file.read()
    head = list(HEADER.unpack_from(data))
    offset, size, count, names = head[6], head[11], head[12], head[13]
    sections = [list(SECTION.unpack_from(data, offset + i * size)) for i in range(count)]

    def name(section):
        at = sections[names][4] + section[0]
        return data[at:data.index(b"\0", at)]

    kept = [i for i, s in enumerate(sections) if s[2] & SHF_ALLOC or not name(s).startswith((b".debug", b".comment"))]
    end = max([s[4] + s[5] for s in sections if s[2] & SHF_ALLOC and s[1] != 8] + [head[5] + head[9] * head[10]])
    out = bytearray(data[:end])
    new = {old: at for at, old in enumerate(kept)}
    table = []
    for i in kept:
        s = list(sections[i])
        if not s[2] & SHF_ALLOC and s[5]:
            body = bytearray(data[s[4]:s[4] + s[5]])
            if s[1] == SHT_SYMTAB:  # symbols name their sections by index
                for at in range(0, len(body), 24):
                    index = struct.unpack_from("<H", body, at + 6)[0]
                    if index < 0xff00:
                        struct.pack_into("<H", body, at + 6, new.get(index, 0))
            out += bytes(-len(out) % max(s[8], 1))
            s[4] = len(out)
            out += body
        s[6] = new.get(s[6], 0)
        table.append(s)
    out += bytes(-len(out) % 8)
    head[6], head[12], head[13] = len(out), len(table), new[names]
    for s in table:
        out += SECTION.pack(*s)
    out[:HEADER.size] = HEADER.pack(*head)
    mode = os.stat(path).st_mode
    with open(path + ".new", "wb") as file:
        file.write(out)
    os.chmod(path + ".new", mode)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
