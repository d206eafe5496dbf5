#!/usr/bin/env python3
"""glossary.py - English words of programs for the words of five other languages: models/code/words.glossary.

    glossary.py FOLDER code.model OUT

FOLDER has catalogues of translated messages as packages carry them: .../LANG/LC_MESSAGES/NAME.mo (glossary.sh fetches them). The words of messages
and of their translations are aligned (IBM model 1, both ways); a foreign word gets the English word that it stands for most, or none if that
says nothing ("and"). Only words that the model for code has are taken. Chinese is segmented by jieba, Japanese by janome, here only: when a
question is asked, the longest match counts. The same catalogues give the same bytes. The format is told in src/app/search/search_glossary.h."""
import math, os, re, struct, sys, unicodedata
from collections import Counter, defaultdict

import numpy as np

LANGUAGES = ("de", "es", "fr", "ja", "zh")  # their place is their number in the file
FOLDERS = {"de": "de", "es": "es", "fr": "fr", "ja": "ja", "zh_CN": "zh", "zh_Hans": "zh"}
ROUNDS = 6
MOST_TOKENS, MOST_TEXT, MOST_OTHER = 14, 110, 130  # longer messages say less for more work
LEAST_SCORE = 0.08
LATIN = re.compile(r"[^\W\d_]+")
JOIN = {"es": ("de", "del", "por", "en", "a"), "fr": ("de", "d", "du", "à", "en", "des")}  # mot de passe: one word in English
# words that say nothing about code: those of search_word_is_stop(), and what else connects words in messages
STOPS = set(
    """a about after again all also an and any are as at be been before being between but by can cannot code could do does each find for from get
    gets given had has have he her here his how i if in into is it its just may me might more most must my no not of off on only or other our out
    over own please same seems she should show so some such than that the their them then there these they this those to too unable up us used
    using very via was we were what when where whether which while who why will with within would you your""".split()
) - {"after", "before"}
ENDINGS = "ation ition ments ment ness ings ing ions ion able ible ized izer ize ers ors er or ed ly al".split()


def read_mo(path):
    """Pairs of a message and its translation."""
    data = open(path, "rb").read()
    pairs = []
    try:
        order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
        magic, _, n, originals, translations = struct.unpack(order + "5I", data[:20])
        for i in range(n if magic == 0x950412DE else 0):
            texts = []
            for at, form in ((originals, 0), (translations, -1)):
                size, offset = struct.unpack(order + "II", data[at + 8 * i : at + 8 * i + 8])
                texts.append(data[offset : offset + size].split(b"\0")[form].decode("utf-8"))
            text, other = texts[0].split("\4")[-1], texts[1]
            if text and other and text != other:
                pairs.append((text, other))
    except (UnicodeDecodeError, struct.error):
        pass
    return pairs


def clean(text):
    """Without marks, places for values and accelerators."""
    text = re.sub(r"<[^>]*>|%[-+ #0-9.$]*[hlLqjzt]*[a-zA-Z]|%\([a-z_]+\)s|\{[^}]*\}|\$[a-z_]+|https?:\S+|&[a-z]+;|\([&_]?[A-Z]\)", " ", text)
    return unicodedata.normalize("NFKC", text.replace("_", "").replace("&", "")).lower()


def read_pairs(folder):
    found = {language: {} for language in LANGUAGES}
    for at, folders, files in os.walk(folder):
        folders.sort()
        parts = at.split(os.sep)
        if parts[-1] != "LC_MESSAGES" or parts[-2] not in FOLDERS:
            continue
        for name in sorted(files):
            for text, other in read_mo(os.path.join(at, name)):
                text, other = clean(text), clean(other)
                if len(text) < MOST_TEXT and len(other) < MOST_OTHER:
                    found[FOLDERS[parts[-2]]].setdefault((text, other))
    return {language: list(pairs) for language, pairs in found.items()}


def lexicon(path):
    """The words of a static model (src/lib/embed/static_file.h)."""
    data = open(path, "rb").read()
    _, _, words, slots, _, pages = struct.unpack("<6I", data[8:32])
    starts = struct.unpack("<%dI" % (words + 1), data[128 : 128 + 4 * (words + 1)])
    base = 128 + 4 * (words + 1) + 4 * pages + 4 * words + 2 * slots + words
    return {data[base + starts[i] : base + starts[i + 1]].decode("utf-8", "replace") for i in range(words)}


def splitter(language):
    if language == "zh":
        import jieba

        jieba.setLogLevel(60)
        return lambda text: [w for w in jieba.cut(text) if re.search(r"[\u3400-\u9fff]", w)]
    if language == "ja":
        from janome.tokenizer import Tokenizer

        tokenizer = Tokenizer(wakati=True)
        return lambda text: [w for w in tokenizer.tokenize(text) if re.search(r"[\u3041-\u30ff\u3400-\u9fff]", w)]
    return LATIN.findall


def join_phrases(foreign, english, language):
    """Makes one word of three that stand for one English word: base de datos."""
    grams = lambda t: {tuple(t[i : i + 3]) for i in range(len(t) - 2) if t[i + 1] in JOIN.get(language, ())}
    phrases, words, both = Counter(), Counter(), Counter()
    for e, f in zip(english, foreign):
        words.update(set(e))
        phrases.update(grams(f))
    for e, f in zip(english, foreign):
        both.update((g, w) for g in grams(f) if phrases[g] >= 8 for w in set(e))
    good = {g for (g, w), n in both.items() if n >= 0.6 * phrases[g] and 2 * n >= 0.4 * (phrases[g] + words[w])}
    for t in foreign:
        for i in range(len(t) - 2):
            if tuple(t[i : i + 3]) in good:
                t[i : i + 3] = [" ".join(t[i : i + 3])]


def number(texts, least):
    counts = Counter(w for words in texts for w in set(words))
    words = sorted(w for w, n in counts.items() if n >= least)
    ids = {w: i for i, w in enumerate(words)}
    return words, counts, [[ids[w] for w in dict.fromkeys(t) if w in ids] for t in texts]


def align(sources, targets, n_sources, n_targets):
    """p(target | source) and expected counts, by source x n_targets + target; source 0 is "nothing"."""
    rows, cols, group, g = [], [], [], 0
    for a, b in zip(sources, targets):
        a = [0] + [x + 1 for x in a]
        for y in b:
            rows.extend(a)
            cols.extend([y] * len(a))
            group.extend([g] * len(a))
            g += 1
    keys, index = np.unique(np.array(rows, dtype=np.int64) * n_targets + np.array(cols, dtype=np.int64), return_inverse=True)
    group = np.array(group)
    p = np.ones(len(keys))
    for _ in range(ROUNDS):
        w = p[index]
        count = np.bincount(index, w / np.bincount(group, w, minlength=g)[group], minlength=len(keys))
        sums = np.bincount(keys // n_targets, count, minlength=n_sources + 1)
        p = count / np.maximum(sums[keys // n_targets], 1e-12)
    return keys.tolist(), p.tolist(), count.tolist()


def stem(word):
    """As src/app/search/search_words.c has it."""
    cut = lambda w, end: w[: -len(end)] if w.endswith(end) and len(w) >= len(end) + 3 else None
    if cut(word, "ies"):
        return cut(word, "ies")
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "su":
        word = word[:-1]
    for end in ENDINGS:
        if cut(word, end):
            word = cut(word, end)
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiousl":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word[-1] in "eyi" else word


def best_word(found):
    """Of (score, word): words of one stem together; the best of the best stem. None: too weak."""
    stems = defaultdict(list)
    for score, word in found:
        stems[stem(word)].append((score, word))
    total, _, best = max((sum(s for s, _ in v), k, max(v)[1]) for k, v in stems.items())
    return best if total >= LEAST_SCORE else None


def fold(word):
    """As src/lib/base/token.h does it."""
    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if unicodedata.combining(c) < 10)


def lead(pairs, language, known):
    """Foreign word to English word."""
    split = splitter(language)
    english = [[w for w in LATIN.findall(a) if w in known][:MOST_TOKENS] for a, _ in pairs]
    foreign = [split(b)[:MOST_TOKENS] for _, b in pairs]
    join_phrases(foreign, english, language)
    e_words, _, e = number(english, 3)
    f_words, f_counts, f = number(foreign, 2)
    back = dict(zip(*align(e, f, len(e_words), len(f_words))[:2]))
    found = defaultdict(list)
    for key, p, count in zip(*align(f, e, len(f_words), len(e_words))):
        source, target = divmod(key, len(e_words))
        if source and p >= 0.02 and count >= 0.8:
            other = back.get((target + 1) * len(f_words) + source - 1, 0)
            found[f_words[source - 1]].append((math.sqrt(p * other), e_words[target]))
    table = {}
    for word in sorted(found, key=lambda w: (-f_counts[w], w)):
        key, best = fold(word) if language not in ("ja", "zh") else word, best_word(found[word])
        # words in hiragana alone mostly join others
        empty = best in STOPS or (language == "ja" and re.fullmatch(r"[\u3041-\u309f]{1,4}", word))
        if best and len(key.encode()) <= 64:
            table.setdefault(key, "" if empty else best)
    return table


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def write(tables, path):
    entries, text = b"", b""
    n = 0
    for number_, language in enumerate(LANGUAGES):
        for key, word in sorted((k.encode(), w.encode()) for k, w in tables[language].items()):
            entries += struct.pack("<IBBBB", len(text), len(key), len(word), number_, 0)
            text += key + word
            n += 1
    body = entries + text
    head = struct.pack("<8sIIIIQ28x", b"LODEGLO1", 1, n, len(text), crc32c(body), 64 + len(body))
    with open(path, "wb") as out:
        out.write(head + struct.pack("<I", crc32c(head)) + body)


def main():
    folder, model, out = sys.argv[1:4]
    known, pairs = lexicon(model), read_pairs(folder)
    tables = {}
    for language in LANGUAGES:
        tables[language] = lead(pairs[language], language, known)
        print(language, len(pairs[language]), "pairs,", len(tables[language]), "words", flush=True)
    write(tables, out)


main()
