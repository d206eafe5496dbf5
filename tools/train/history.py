#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""history.py - questions with answers that nobody had to label, from the histories of public repositories.

    history.py trees SOURCES MIRRORS OUT     a tree and the questions of every repository in SOURCES
    history.py frozen COMMITS SOURCES MIRRORS OUT    the same for a frozen set (bench/quality/sets/commits.tsv)
    history.py people QUESTIONS SOURCES MIRRORS OUT  trees and questions of a set that a person wrote (bench/quality/sets/people.tsv)

SOURCES has lines "train|held LANGUAGE OWNER/NAME COMMIT"; MIRRORS/OWNER+NAME/repo (or MIRRORS/OWNER+NAME) is its git
directory; `git clone --bare` makes one. OUT/trees/OWNER+NAME gets the files at COMMIT, OUT/tasks.jsonl lines as bench/quality/tasks.h reads them. Kinds
of questions (`category`):

    commit   the subject of a commit: the code files that it changed
    body     the first sentence of its message's body: the same
    comment  the first sentence of a comment or docstring: the file that it was in
    section  a heading, or the first sentence below it, of a document: the files that define the names in it

A question must not stand in the tree that is asked: comments that became questions are removed from it, and so are
documents, and all change logs. Held repositories give commits only. Everything is chosen by hashes of names, so the same commits give the same questions.
"""
import collections
import hashlib
import json
import os
import re
import subprocess
import sys

MOST = {'commit': 60, 'body': 20, 'comment': 50, 'section': 30}  # questions of a kind, for each repository
MOST_COMMITS = 4000  # newest ones looked at
CODE = set('''py pyi js mjs cjs jsx ts tsx go java php rb rs c h cc cpp cxx hpp hh cs kt kts scala swift ex exs hs lua sh bash
zig erl m'''.split())
DOCUMENT = set('md markdown rst txt adoc mdx'.split())
TEST = re.compile(r'(^|/)(tests?|specs?|__tests__|testing|testdata|fixtures?|examples?|samples?|benchmarks?|bench|demo|docs?|vendor|third_party|'
                  r'node_modules|dist|it|e2e|unittests?|integration|regress)/|(_test|_spec|\.test|\.spec|Tests?|Spec|IT)\.\w+$|(^|/)(test_|tests?\.|conftest)', re.I)
CHANGES = re.compile(r'(^|/)(change_?log|changes?|history|news|release[-_ ]?notes?|releases?|upgrad(e|ing)\w*|migration\w*|whatsnew|authors|contributors|'
                     r'backers|sponsors)[^/]*(\.(md|markdown|rst|txt|adoc|mdx|html|ya?ml|json))?$|(^|/)\.?(changelogs?|changes|changesets?|unreleased|newsfragments|release[-_]?notes)/', re.I)
DULL = re.compile(r'^(merge|revert|bump|release|prepare|version|update (dep|change|readme|version|copyright|license|travis|ci|docs?|author)|upgrade|'
                  r'typo|fix typo|lint|format|reformat|whitespace|cleanup|clean up|minor|misc|wip|ci|chore|build|docs?|style|changelog|squash|fixup|'
                  r'v?\d+\.\d+|\[maven|\[ci|add tests?|fix tests?|test[s:]|fix (build|ci|lint|warning|compil)|remove unused|rename|copyright|backport|cherry)', re.I)
TRIVIAL = re.compile(r'\b(typos?|changelog|readme|copyright|licen[sc]e|dependabot|whitespace|clippy|rubocop|eslint|prettier|ktlint|'
                     r'detekt|phpstan|psalm|gofmt|mypy|lint(er|ing|s)?|flake8|formatting|indent\w*|nitpick|nits?)\b', re.I)
STOP = set('''a an the of to in on for and or with from by is are be as at it its this that these those not no when if so do
does into add adds added fix fixes fixed use uses used using make makes remove removes removed support update updates change changes
allow allows issue bug now more some all also only don doesn can will should code method function class file test tests'''.split())
WORD = re.compile(r'[A-Za-z][A-Za-z0-9_]+')


def pick(key, n, items):
    """n of the items, chosen by the hash of what names them."""
    return sorted(items, key=lambda x: hashlib.sha256((key + repr(x)).encode()).digest())[:n]


def git(repo, *args):
    return subprocess.run(['git', '-C', repo, *args], check=True, stdout=subprocess.PIPE).stdout.decode('utf-8', 'replace')


def git_directory(mirrors, name):
    path = os.path.join(mirrors, name.replace('/', '+'))
    return os.path.join(path, 'repo') if os.path.isdir(os.path.join(path, 'repo')) else path


def is_code(path):
    return path.rsplit('.', 1)[-1] in CODE and not TEST.search(path) and '.min.' not in path


def is_question(text):
    words = [w for w in WORD.findall(text) if w.lower() not in STOP]
    return 3 <= len(words) and len(text) <= 160 and sum(c.isalpha() or c == ' ' for c in text) > 0.75 * len(text)


# ---- Commits ----

def clean_subject(text):
    text = re.sub(r'\s*\(?\[?(closes?|fixe?s?|resolves?|refs?|see|gh|issue|pr)?[ :]*(#|gh-|GH-)\d+\]?\)?', '', text, flags=re.I)
    text = re.sub(r'^\s*(\[[^\]]*\]\s*)+', '', text)
    text = re.sub(r'^\s*(feat|fix|perf|refactor|feature|bugfix|hotfix|enhancement|improvement)\s*(\([^)]*\))?!?\s*:\s*', '', text, flags=re.I)
    text = re.sub(r'https?://\S+|[A-Z]+-\d+:?', '', text)
    return re.sub(r'\s+', ' ', text).strip(' .:-*')


def first_sentence(text):
    text = re.sub(r'\s+', ' ', text).strip()
    found = re.match(r'(.{15,160}?[.:;!?])(\s|$)', text)
    return (found.group(1) if found else text[:160]).strip(' .:;!?*-')


def commits_of(repo, revision):
    """(commit, subject, body, changed files), newest first."""
    out = git(repo, 'log', '--no-merges', f'-{MOST_COMMITS}', '--no-renames', '--diff-filter=AMD', '--name-only',
              '--format=%x01%H%x02%s%x02%b%x02', revision)
    for record in out.split('\x01')[1:]:
        commit, subject, body, files = record.split('\x02')
        yield commit, subject, body, [f for f in files.split('\n') if f]


def commit_question(subject):
    """The question that a subject makes; None: none."""
    if DULL.search(subject) or re.match(r'\W*(chore|docs?|ci|build|style|tests?)\s*(\([^)]*\))?!?:', subject, re.I): return None
    text = clean_subject(subject)
    return text if is_question(text) and not DULL.search(text) and not TRIVIAL.search(text) else None


def commit_tasks(repo, revision, present):
    tasks, seen = [], set()
    for commit, subject, body, files in commits_of(repo, revision):
        question = commit_question(subject)
        code = [f for f in files if is_code(f)]
        if not question or not 1 <= len(code) <= 3 or len(files) > 8 or not all(f in present for f in code): continue
        if question.lower() in seen: continue
        seen.add(question.lower())
        tasks.append({'category': 'commit', 'commit': commit, 'query': question, 'files': code})
        sentence = first_sentence(re.split(r'\n\s*\n|\n[A-Z][\w-]+: |\n\s*[-*] ', body.strip())[0]) if body.strip() else ''
        if is_question(sentence) and not re.search(r'signed-off|co-authored|reviewed-|https?:|change-id|git-svn|this (commit|reverts)|cherry', sentence, re.I):
            tasks.append({'category': 'body', 'commit': commit, 'query': sentence, 'files': code})
    return tasks


# ---- Comments ----

COMMENT_LINE = re.compile(r'^\s*(///?!?|#+|--+|\*|/\*\*?|;;+)\s?(.*?)(\*/)?\s*$')
DEFINITION = re.compile(r'\b(def|class|func|fn|function|struct|interface|trait|object|module|defmodule|enum|record|protocol|extension|impl|'
                        r'public|private|protected|static|export|fun|val|const|data|sealed|abstract|type)\b|^\w[\w\s*&:<>,]*\([^;]*$')
DEFINED = re.compile(r'\b(?:def|class|func|fn|function|struct|interface|trait|object|module|defmodule|enum|record|protocol|fun|type)\s+(?:\([^)]*\)\s*)?'
                     r'(?:self\.)?([A-Za-z_][\w.]*)')
DOCSTRING = re.compile(r'^(\s*)(?:@(?:module)?doc\s+)?[rbu]?("""|\'\'\')')


def plain_comment(lines):
    text = ' '.join(lines)
    text = re.sub(r'\{@?\w+ ([^}]*)\}|</?\w+[^>]*>|\[`?([^\]`]*)`?\](\([^)]*\))?', r'\1\2', text)
    text = re.sub(r'^\s*(@brief|\\brief|@doc|@description|Summary:?)\s*', '', text)
    return first_sentence(re.split(r'\s[@\\](param|return|see|since|throws|example|internal|api)\b|\s(Args|Parameters|Returns):', text)[0].replace('`', ''))


def comment_blocks(lines):
    """(first line, line after, texts, the line that is described)"""
    i = 0
    while i < len(lines):
        doc = DOCSTRING.match(lines[i])
        if doc:
            end, quote = i, doc.group(2)
            rest = lines[i][doc.end():]
            texts = [rest]
            while quote not in rest and end + 1 < len(lines) and end - i < 80:
                end += 1
                rest = lines[end]
                texts.append(rest)
            texts = [t.replace(quote, '') for t in texts]
            around = lines[end + 1:end + 3] if '@' in lines[i][:doc.end()] else lines[max(0, i - 3):i]
            yield i, end + 1, texts[:texts.index('')] if '' in texts[1:] and texts[0] else texts, ' '.join(around)
            i = end + 1
        elif COMMENT_LINE.match(lines[i]) and not lines[i].lstrip().startswith(('#include', '#define', '#if', '#[', '#!', '*)', '#pragma', '#e')):
            end = i
            while end < len(lines) and COMMENT_LINE.match(lines[end]) and end - i < 80: end += 1
            texts = [COMMENT_LINE.match(l).group(2).strip() for l in lines[i:end]]
            while texts and not texts[0]: texts.pop(0)
            yield i, end, texts[:texts.index('')] if '' in texts else texts, lines[end] if end < len(lines) else ''
            i = end
        else:
            i += 1


def comments_of(path, lines):
    """(first line, line after, question) of comments that describe a definition."""
    for first, after, texts, below in comment_blocks(lines):
        if not DEFINITION.search(below): continue
        text = plain_comment(texts)
        name = DEFINED.search(below)
        if name and text.lower().startswith(name.group(1).lower()): text = text[len(name.group(1)):].strip(' :-')
        if is_question(text) and not re.search(r'copyright|licen[sc]e|todo|fixme|@|http|=|;', text, re.I): yield first, after, text


def comment_tasks(name, texts):
    found = []
    for path, text in texts.items():
        if not is_code(path) or len(text) > 400000: continue
        for first, after, question in comments_of(path, text.split('\n')): found.append((path, first, after, question))
    tasks, cuts = [], collections.defaultdict(list)
    for path, first, after, question in pick(name, 4 * MOST['comment'], found):
        if len(cuts[path]) >= 3 or len(tasks) >= MOST['comment']: continue
        cuts[path].append((first, after))
        tasks.append({'category': 'comment', 'query': question, 'files': [path]})
    for path, spans in cuts.items():
        lines = texts[path].split('\n')
        for first, after in sorted(spans, reverse=True): lines[first:after] = []
        texts[path] = '\n'.join(lines)
    return tasks


# ---- Documents ----

def definitions(texts):
    """Name to the files that define it."""
    where = collections.defaultdict(set)
    for path, text in texts.items():
        if not is_code(path) or len(text) > 400000: continue
        for found in DEFINED.finditer(text): where[found.group(1).split('.')[-1]].add(path)
        where[path].add(path)
        stem = os.path.basename(path).split('.')[0]
        if len(stem) > 3: where[stem].add(path)
    return where


def sections_of(text):
    heading, lines = '', []
    for line, below in zip(text.split('\n'), text.split('\n')[1:] + ['']):
        if re.match(r'#{1,5} ', line) or (re.match(r'[=\-~^]{4,}\s*$', below) and 0 < len(line.strip()) <= len(below) + 2):
            yield heading, '\n'.join(lines)
            heading, lines = line.strip('# \t'), []
        else:
            lines.append(line)
    yield heading, '\n'.join(lines)


def section_files(body, where):
    hits = collections.Counter()
    for name in re.findall(r'`+([A-Za-z_][\w./:]*)(?:\(\))?`+', body) + re.findall(r'[\w/.-]+/[\w.-]+\.\w{1,5}', body):
        files = where.get(name) or where.get(re.split(r'[.:]', name)[-1], ())
        if len(files) == 1: hits[next(iter(files))] += 1
    best = max(hits.values(), default=0)
    return [f for f, n in hits.items() if 2 * n >= best]


def section_tasks(name, texts):
    where, found = definitions(texts), []
    for path, text in texts.items():
        if path.rsplit('.', 1)[-1] not in DOCUMENT or CHANGES.search(path): continue
        for heading, body in sections_of(text):
            files = section_files(re.sub(r'```.*?```', '', body, flags=re.S), where)
            prose = re.sub(r'```.*?```|<[^>]*>|\[([^\]]*)\]\([^)]*\)|[`*_]', r'\1', body, flags=re.S)
            for question in re.sub(r'[`*_]|\(.*\)', '', heading), first_sentence(prose.strip().split('\n\n')[0]):
                question = re.sub(r':\w+:|^\d+[. ]*', '', question).strip()
                if 1 <= len(files) <= 3 and is_question(question) and 'http' not in question: found.append((path, question, files))
    tasks = [{'category': 'section', 'query': q, 'files': files, 'document': p} for p, q, files in pick(name, MOST['section'], found)]
    for task in tasks: texts.pop(task.pop('document'), None)
    return tasks


# ---- Repositories ----

def read_tree(repo, revision):
    """Path to text of the files of a commit that are text and not too large. What the git directory lacks is left out."""
    entries = []
    for entry in git(repo, 'ls-tree', '-r', '-z', revision).split('\0')[:-1]:
        (mode, _, blob), path = entry.split('\t')[0].split(), entry.split('\t', 1)[1]
        if mode.startswith('100') and not CHANGES.search(path): entries.append((blob, path))
    asked = '\n'.join(blob for blob, _ in entries).encode()
    sizes = subprocess.run(['git', '-C', repo, 'cat-file', '--batch-check=%(objectname) %(objectsize)'], input=asked, check=True, stdout=subprocess.PIPE)
    wanted = [e for e, line in zip(entries, sizes.stdout.decode().split('\n')) if line.split()[1].isdigit() and int(line.split()[1]) <= 1000000]
    data = subprocess.run(['git', '-C', repo, 'cat-file', '--batch'], input='\n'.join(b for b, _ in wanted).encode(), check=True, stdout=subprocess.PIPE).stdout
    texts, at = {}, 0
    for _, path in wanted:
        end = data.index(b'\n', at)
        size = int(data[at:end].split()[2])
        try: texts[path] = data[end + 1:end + 1 + size].decode('utf-8')
        except UnicodeDecodeError: pass
        at = end + 1 + size + 1
    return texts


def write_tree(folder, texts):
    for path, text in texts.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8', newline='') as f: f.write(text)


def put_tasks(out, name, language, tasks):
    by_kind, seen = collections.defaultdict(list), set()
    for task in tasks:
        key = task['query'].lower()
        if key not in seen: by_kind[task['category']].append(task)
        seen.add(key)
    for kind in sorted(by_kind):
        for task in pick(name, MOST[kind], by_kind[kind]):
            line = {'repo': name.replace('/', '+'), 'language': language, 'query': task['query'], 'category': kind,
                    'relevant': [{'path': p} for p in task['files']], 'secondary': []}
            if 'commit' in task: line['commit'] = task['commit']
            out.write(json.dumps(line, ensure_ascii=False) + '\n')


def make_trees(sources, mirrors, out):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, 'tasks.jsonl'), 'w', encoding='utf-8') as tasks_file:
        for line in open(sources, encoding='utf-8'):
            if line.startswith('#'): continue
            half, language, name, revision = line.split()
            repo, folder = git_directory(mirrors, name), os.path.join(out, 'trees', name.replace('/', '+'))
            texts = read_tree(repo, revision)
            tasks = commit_tasks(repo, revision, set(texts))
            if half == 'train': tasks += section_tasks(name, texts) + comment_tasks(name, texts)
            if not os.path.isdir(folder): write_tree(folder, texts)
            put_tasks(tasks_file, name, language, tasks)
            print(half, language, name, collections.Counter(t['category'] for t in tasks), file=sys.stderr)


def make_frozen_trees(names, sources, mirrors, out):
    """The trees of the repositories that `names` is true for."""
    for line in open(sources, encoding='utf-8'):
        if line.startswith('#'): continue
        half, _, name, revision = line.split()
        folder = os.path.join(out, 'trees', name.replace('/', '+'))
        if names(half, name) and not os.path.isdir(folder): write_tree(folder, read_tree(git_directory(mirrors, name), revision))


def make_frozen(commits, sources, mirrors, out):
    make_frozen_trees(lambda half, _: half == 'held', sources, mirrors, out)
    with open(os.path.join(out, 'tasks.jsonl'), 'w', encoding='utf-8') as tasks_file:
        for line in open(commits, encoding='utf-8'):
            if line.startswith('#'): continue
            language, name, commit, *files = line.rstrip('\n').split('\t')
            subject = git(git_directory(mirrors, name), 'log', '-1', '--format=%s', commit).rstrip('\n')
            put = {'repo': name.replace('/', '+'), 'language': language, 'query': commit_question(subject), 'category': 'commit',
                   'relevant': [{'path': p} for p in files], 'secondary': []}
            tasks_file.write(json.dumps(put, ensure_ascii=False) + '\n')


def make_people(questions, sources, mirrors, out):
    asked = [line.rstrip('\n').split('\t') for line in open(questions, encoding='utf-8')]
    named = {name for name, *_ in asked}
    make_frozen_trees(lambda _, name: name in named, sources, mirrors, out)
    with open(os.path.join(out, 'tasks.jsonl'), 'w', encoding='utf-8') as tasks_file:
        for name, question, *files in asked:
            put = {'repo': name.replace('/', '+'), 'query': question, 'category': 'people', 'relevant': [{'path': p} for p in files], 'secondary': []}
            tasks_file.write(json.dumps(put, ensure_ascii=False) + '\n')


if __name__ == '__main__':
    if len(sys.argv) == 5 and sys.argv[1] == 'trees': make_trees(*sys.argv[2:])
    elif len(sys.argv) == 6 and sys.argv[1] == 'frozen': make_frozen(*sys.argv[2:])
    elif len(sys.argv) == 6 and sys.argv[1] == 'people': make_people(*sys.argv[2:])
    else: sys.exit(__doc__)
