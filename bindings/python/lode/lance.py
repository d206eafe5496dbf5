"""Reads the tables of a LanceDB database, through LanceDB itself, as JSON lines: what `lode import lance` runs.

    python -m lode.lance DIR --list           one object a table: name, version, rows, metric, and which columns become what; with --table of one
    python -m lode.lance DIR --table NAME     one object a record, as `lode db import` reads them; --version: as the table was then

A failure is a line that begins with "!". LanceDB has no unique ids: of rows with the same id the last one counts, because that is the
one that was added last. This module needs lancedb and nothing else of Lode.
"""
import argparse
import base64
import datetime
import json
import math
import os
import sys

ID_NAMES = ("id", "_id", "chunk_id", "doc_id", "document_id", "uuid", "key")
TEXT_NAMES = ("document", "text", "content", "page_content", "body", "chunk")
METRICS = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "ip"}
BATCH_ROWS = 1000
MAX_INT = 2 ** 63


class Refused(Exception):
    """Says what to do, for the person who asked."""


def connect(folder):
    try:
        import lancedb
    except ImportError as why:
        raise Refused("LanceDB reads its own files, and this Python (%s) does not have it (%s): `pip install lancedb` there, or name "
                      "another interpreter with --python" % (sys.executable, why))
    if "://" not in folder and not os.path.isdir(folder):
        raise Refused("there is no folder %r" % folder)
    return lancedb.connect(folder)


def table_names(db):
    names, page = [], None
    if not hasattr(db, "list_tables"):
        return sorted(db.table_names(limit=1000000))
    while True:
        found = db.list_tables(page_token=page)
        names += list(getattr(found, "tables", found))
        page = getattr(found, "page_token", None)
        if not page:
            return sorted(names)


# ---- Which column is what

def is_vector(field):
    kind = str(field.type)
    return "list" in kind and any(number in kind for number in ("float", "double", "halffloat"))


def pick(names, wanted, given, what):
    if given:
        if given not in names:
            raise Refused("there is no column %r: %s are there" % (given, ", ".join(sorted(names))))
        return given
    return next((name for name in wanted if name in names), None)


def columns_of(table, options):
    """The columns of ids (None: rows are numbered), texts (None: there are none) and vectors."""
    names = set(table.schema.names)
    vectors = [f.name for f in table.schema if is_vector(f)]
    vector = pick(names, (), options.vector, "vector")
    if not vector and len(vectors) > 1 and "vector" not in vectors:
        raise Refused("the table %r has several columns of vectors (%s): name one with --vector" % (table.name, ", ".join(vectors)))
    vector = vector or ("vector" if "vector" in vectors else vectors[0] if vectors else None)
    return pick(names, ID_NAMES, options.id, "id"), pick(names, TEXT_NAMES, options.text, "text"), vector


def metric_of(table, vector):
    """The distance of the vector index; LanceDB's default is l2."""
    for index in table.list_indices():
        if vector not in index.columns:
            continue
        stats = table.index_stats(index.name)
        kind = str(getattr(stats, "distance_type", None) or "l2").lower()
        if kind not in METRICS:
            raise Refused("the index of %r measures %r, which Lode does not have: say --metric" % (table.name, kind))
        return METRICS[kind]
    return "l2"


# ---- Rows

def plain(value):
    """A value of metadata, or None if there is nothing to keep."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -MAX_INT <= value < MAX_INT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (list, tuple)):
        items = [plain(v) for v in value]
        if items and len({bool if isinstance(v, bool) else float if isinstance(v, (int, float)) else type(v) for v in items}) == 1 \
                and isinstance(items[0], (bool, int, float, str)):
            return items
        return json.dumps(items, ensure_ascii=False) if items else None
    if isinstance(value, dict):
        return json.dumps({str(k): plain(v) for k, v in value.items()}, ensure_ascii=False)
    return str(value)


def batches(table, columns=None):
    query = table.search()
    if columns:
        query = query.select(columns)
    if hasattr(query, "to_batches"):
        return query.to_batches(batch_size=BATCH_ROWS)
    return table.to_arrow().to_batches(max_chunksize=BATCH_ROWS)


def last_rows(table, column):
    """The number of the last row of each id; rows without one stand for themselves."""
    at, last = 0, {}
    for batch in batches(table, [column]):
        for value in batch.column(column).to_pylist():
            last[id_of(value, at)] = at
            at += 1
    return last


def id_of(value, at):
    return "row-%d" % at if value is None or value == "" else str(value)


def records(table, columns):
    id_column, text_column, vector_column = columns
    last = last_rows(table, id_column) if id_column else None
    at = -1
    for batch in batches(table):
        for row in batch.to_pylist():
            at += 1
            key = id_of(row.pop(id_column) if id_column else None, at)
            if last is not None and last[key] != at:
                continue
            record = {"id": key}
            text = row.pop(text_column, None) if text_column else None
            vector = row.pop(vector_column, None) if vector_column else None
            if text is not None:
                record["document"] = str(text)
            metadata = {name: value for name, value in ((n, plain(v)) for n, v in row.items() if n != "_distance") if value is not None}
            if metadata:
                record["metadata"] = metadata
            if vector is not None:
                record["embedding"] = vector
            yield record


# ---- The program

def describe(db, options):
    for name in table_names(db):
        if options.table and name != options.table:
            continue
        table = db.open_table(name)
        id_column, text_column, vector_column = columns_of(table, options)
        rows = table.count_rows()
        unique = len(last_rows(table, id_column)) if id_column else rows
        yield {"table": name, "version": table.version, "rows": rows, "records": unique, "metric": metric_of(table, vector_column) if vector_column else "l2",
               "id": id_column, "text": text_column, "vector": vector_column}


def run(options, out):
    db = connect(options.folder)
    if options.list:
        lines = describe(db, options)
    elif options.table:
        table = db.open_table(options.table)
        if options.version is not None:
            table.checkout(options.version)  # it may have grown since it was listed
        lines = records(table, columns_of(table, options))
    else:
        raise Refused("say --list or --table NAME")
    for line in lines:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m lode.lance", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--version", type=int)
    for name in ("table", "id", "text", "vector"):
        parser.add_argument("--" + name)
    options = parser.parse_args(arguments)
    # LanceDB logs to standard error, which the caller reads together with the records
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    try:
        run(options, out)
    except BrokenPipeError:
        return 1
    except Exception as why:
        out.write("! %s\n" % " ".join((str(why) or repr(why)).split())[:400])
        out.flush()
        return 1
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
