#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lines.py - questions and the lines that answer them, from the histories of public repositories.

    lines.py mine HALF SOURCES MIRRORS >SET.tsv       what can be asked about the repositories of SOURCES that are HALF (train or held)
    lines.py make SET.tsv SOURCES MIRRORS OUT         the trees and OUT/tasks.jsonl of a set (bench/quality/sets/answers.tsv)

SOURCES, MIRRORS and OUT are those of history.py. Kinds of questions:

    commit   the subject of a commit: the lines of its changes that are still there
    comment  the first sentence of a comment: the first lines of the definition that it describes

A line of a set has the kind, the language, the repository, where the question comes from (a commit; lines PATH:FIRST-LAST that are cut
out of the tree, as the answer would stand there) and the places PATH:FIRST-LAST that answer it, in the tree without what is cut out.
"""
import collections
import json
import os
import re
import subprocess
import sys

from history import comments_of, commit_question, commits_of, git, git_directory, is_code, pick, read_tree, write_tree

MOST = {'commit': 50, 'comment': 40}  # questions of a kind, for each repository
MOST_PLACES = 4    # a commit that changed more places says little about any
NEAR = 5           # changed lines with at most so many others between them are one place
HEAD_LINES = 12    # lines of a definition that a comment describes
HUNK = re.compile(r'^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@', re.M)
IDLE = re.compile(r'^\s*($|[)}\]];?,?\s*$|end\s*$|(import|from|use|using|include|require|package|namespace|module|alias)\b|#\s*include|//|#|\*|/\*|--|<!--|"""|\'\'\')')


def hunks(repo, before, after, path):
    """(old first, old count, new first, new count) of each change of a file."""
    text = git(repo, 'diff', '--no-renames', '-U0', before, after, '--', path)
    return [tuple(int(x) if x else 1 for x in found) for found in HUNK.findall(text)]


def still_there(changes, lines):
    """Where lines of the old file are in the new one; those that were changed are left out."""
    moved = []
    for line in lines:
        shift = 0
        for first, count, _, new in changes:
            begin = first if count else first + 1  # an insertion stands after `first`
            if line >= begin + count: shift += new - count
            elif line >= begin: break
            else:
                moved.append(line + shift)
                break
        else: moved.append(line + shift)
    return moved


def places_of(lines):
    """Runs of lines: (first, last)."""
    runs = []
    for line in sorted(lines):
        if runs and line - runs[-1][1] <= NEAR + 1: runs[-1][1] = line
        else: runs.append([line, line])
    return [tuple(r) for r in runs]


def commit_places(repo, revision, commit, files, texts):
    found = []
    for path in files:
        text = texts[path].split('\n')
        added = [n for _, _, first, count in hunks(repo, commit + '^', commit, path) for n in range(first, first + count)]
        there = still_there(hunks(repo, commit, revision, path), added)
        found += [(path, *p) for p in places_of(n for n in there if n <= len(text) and not IDLE.match(text[n - 1]))]
    return found


def mine_commits(name, repo, revision, texts):
    asked, found, seen = [], [], set()
    for commit, subject, _, files in commits_of(repo, revision):
        question = commit_question(subject)
        code = [f for f in files if is_code(f)]
        if not question or not 1 <= len(code) <= 3 or len(files) > 8 or not all(f in texts for f in code): continue
        if question.lower() in seen: continue
        seen.add(question.lower())
        asked.append((commit, code))
    for commit, code in pick(name, 6 * MOST['commit'], asked):
        if len(found) == MOST['commit']: break
        try: places = commit_places(repo, revision, commit, code, texts)
        except subprocess.CalledProcessError: continue  # the git directory lacks a part of it
        if 1 <= len(places) <= MOST_PLACES: found.append((commit, places))
    return found


def mine_comments(name, texts):
    """(path, first, last, first line of the definition), lines from 1."""
    found = []
    for path, text in texts.items():
        if not is_code(path) or len(text) > 400000: continue
        lines = text.split('\n')
        for first, after, _ in comments_of(path, lines):
            is_docstring = '"""' in lines[first] or "'''" in lines[first]
            at = after + 1
            if is_docstring and path.endswith('.py'):
                at = first
                while at > 1 and not re.match(r'\s*(async\s+)?(def|class)\b', lines[at - 1]) and first - at < 10: at -= 1
            found.append((path, first + 1, after, at))
    kept, of = [], collections.Counter()
    for item in pick(name, 4 * MOST['comment'], found):
        of[item[0]] += 1
        if of[item[0]] <= 3 and len(kept) < MOST['comment']: kept.append(item)
    return kept


def after_cuts(cuts, path, line):
    return line - sum(min(last, line - 1) - first + 1 for p, first, last in cuts if p == path and first < line)


def put(kind, language, name, source, places):
    print('\t'.join([kind, language, name, source] + [f'{p}:{first}-{last}' for p, first, last in places]))


def mine(half, sources, mirrors):
    for line in open(sources, encoding='utf-8'):
        if line.split()[0] != half: continue
        _, language, name, revision = line.split()
        repo = git_directory(mirrors, name)
        texts = read_tree(repo, revision)
        commits, comments = mine_commits(name, repo, revision, texts), mine_comments(name, texts)
        cuts = [c[:3] for c in comments]
        for path, first, last, at in comments:
            head = after_cuts(cuts, path, at)
            end = min(head + HEAD_LINES - 1, after_cuts(cuts, path, texts[path].count('\n') + 1))
            put('comment', language, name, f'{path}:{first}-{last}', [(path, head, max(head, end))])
        for commit, places in commits:
            put('commit', language, name, commit, [(p, after_cuts(cuts, p, first), after_cuts(cuts, p, last)) for p, first, last in places])
        print(half, language, name, len(comments), len(commits), file=sys.stderr)


def place(text):
    path, lines = text.rsplit(':', 1)
    return path, *map(int, lines.split('-'))


def cut(text, spans):
    lines = text.split('\n')
    for first, last in sorted(spans, reverse=True): lines[first - 1:last] = []
    return '\n'.join(lines)


def make(file, sources, mirrors, out):
    revisions = {l.split()[2]: l.split()[3] for l in open(sources, encoding='utf-8') if not l.startswith('#')}
    rows = collections.defaultdict(list)
    for line in open(file, encoding='utf-8'):
        if not line.startswith('#'): rows[line.split('\t')[2]].append(line.rstrip('\n').split('\t'))
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, 'tasks.jsonl'), 'w', encoding='utf-8') as tasks:
        for name, of in rows.items():
            repo, folder = git_directory(mirrors, name), os.path.join(out, 'trees', name.replace('/', '+'))
            texts, cuts = read_tree(repo, revisions[name]), collections.defaultdict(list)
            for kind, language, _, source, *places in of:
                if kind == 'comment':
                    path, first, last = place(source)
                    question = next(q for f, a, q in comments_of(path, texts[path].split('\n')) if (f + 1, a) == (first, last))
                    cuts[path].append((first, last))
                else: question = commit_question(git(repo, 'log', '-1', '--format=%s', source).rstrip('\n'))
                targets = [dict(zip(('path', 'start_line', 'end_line'), place(p))) for p in places]
                tasks.write(json.dumps({'repo': name.replace('/', '+'), 'language': language, 'query': question, 'category': kind,
                                        'relevant': targets, 'secondary': []}, ensure_ascii=False) + '\n')
            for path, spans in cuts.items(): texts[path] = cut(texts[path], spans)
            if not os.path.isdir(folder): write_tree(folder, texts)


if __name__ == '__main__':
    if len(sys.argv) == 5 and sys.argv[1] == 'mine': mine(*sys.argv[2:])
    elif len(sys.argv) == 6 and sys.argv[1] == 'make': make(*sys.argv[2:])
    else: sys.exit(__doc__)
