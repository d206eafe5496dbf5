#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rank.py - learns an order of files from the facts that bench/quality/facts wrote, and measures it.

    rank.py TASKS.jsonl FACTS SOURCES MODEL [--rounds N] [--leaves N] [--rate X] [--part N]

Gradient-boosted trees (LightGBM 4, lambdarank), written to MODEL. Repositories that SOURCES calls "train" are learnt from, those
it calls "held" only measured. With --part, every N-th repository to learn from is left out and measured instead: to choose
the other options. Each repository counts about the same, and so does each kind of question. Nothing that this writes is used by
lode: docs/SEARCH.md says why.
"""
import argparse
import collections
import json
import struct

import lightgbm
import numpy

HEAD = 2  # numbers before the facts: target or not, score of the formula


def read_facts(path):
    """(index of the task, targets, rows) of each question."""
    data = open(path, 'rb').read()
    width, at, groups = HEAD + struct.unpack_from('<I', data)[0], 4, []
    while at < len(data):
        index, files, targets = struct.unpack_from('<3I', data, at)
        rows = numpy.frombuffer(data, '<f4', files * width, at + 12).reshape(files, width)
        at += 12 + rows.nbytes
        groups.append((index, targets, rows))
    return groups


def facts_of(groups):
    return numpy.concatenate([rows[:, HEAD:] for _, _, rows in groups])


def hand_of(groups):
    return numpy.concatenate([rows[:, 1] for _, _, rows in groups])


# ---- Judging ----

def ndcg(relevant, targets, scores):
    order = numpy.argsort(-scores, kind='stable')[:10]
    gain = sum(1 / numpy.log2(i + 2) for i, k in enumerate(order) if relevant[k] > 0)
    return gain / sum(1 / numpy.log2(i + 2) for i in range(min(targets, 10)))


def evaluate(groups, tasks, scores):
    """Mean over repositories by category; `scores` has those of all rows, one group after the other."""
    sums, at = collections.defaultdict(lambda: collections.defaultdict(list)), 0
    for index, targets, rows in groups:
        sums[tasks[index]['category']][tasks[index]['repo']].append(ndcg(rows[:, 0], targets, scores[at:at + len(rows)]))
        at += len(rows)
    return {k: float(numpy.mean([numpy.mean(v) for v in by.values()])) for k, by in sorted(sums.items())}


def show(title, groups, tasks, scores):
    print(title, ' '.join(f'{k} {v:.4f}' for k, v in evaluate(groups, tasks, scores).items()), flush=True)


# ---- Learning ----

def learn(groups, tasks, options):
    usable = [g for g in groups if g[2][:, 0].any()]
    counts = collections.Counter((tasks[i]['repo'], tasks[i]['category']) for i, _, _ in usable)
    weights = [numpy.full(len(rows), 30.0 / max(counts[tasks[i]['repo'], tasks[i]['category']], 10)) for i, _, rows in usable]
    data = lightgbm.Dataset(facts_of(usable), numpy.concatenate([rows[:, 0] for _, _, rows in usable]),
                            weight=numpy.concatenate(weights), group=[len(rows) for _, _, rows in usable])
    parameters = {'objective': 'lambdarank', 'lambdarank_truncation_level': 15, 'num_leaves': options.leaves, 'learning_rate': options.rate,
                  'min_data_in_leaf': 200, 'lambda_l2': 5.0, 'feature_fraction': 0.6, 'bagging_fraction': 0.7, 'bagging_freq': 1, 'max_bin': 63,
                  'seed': 20, 'deterministic': True, 'force_row_wise': True, 'num_threads': 2, 'verbosity': -1}
    return lightgbm.train(parameters, data, options.rounds)


if __name__ == '__main__':
    arguments = argparse.ArgumentParser()
    for name in 'tasks', 'facts', 'sources', 'model': arguments.add_argument(name)
    for name, value in ('rounds', 160), ('leaves', 12), ('part', 0): arguments.add_argument('--' + name, type=int, default=value)
    arguments.add_argument('--rate', type=float, default=0.08)
    options = arguments.parse_args()
    tasks = [json.loads(line) for line in open(options.tasks, encoding='utf-8')]
    held = {l.split()[2].replace('/', '+') for l in open(options.sources, encoding='utf-8') if l.startswith('held ')}
    groups = read_facts(options.facts)
    names = sorted({tasks[g[0]]['repo'] for g in groups} - held)
    judged = set(names[::options.part]) if options.part else held
    test = [g for g in groups if tasks[g[0]]['repo'] in judged]
    show('by the formula', test, tasks, hand_of(test))
    model = learn([g for g in groups if tasks[g[0]]['repo'] not in judged | held], tasks, options)
    model.save_model(options.model)
    show('by the trees', test, tasks, model.predict(facts_of(test)))
