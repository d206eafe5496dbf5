"""`lode import lance` with the real program. LanceDB itself is used where the interpreter has it; otherwise a module in its place that has
the same few functions, so that what Lode makes of its rows is tested everywhere."""
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

try:
    import lancedb
except ImportError:
    lancedb = None

STAND_IN = textwrap.dedent('''
    import json, os

    class Field:
        def __init__(self, name, kind):
            self.name, self.type = name, kind

    class Schema(list):
        @property
        def names(self):
            return [f.name for f in self]

    class Batch:
        def __init__(self, rows):
            self.rows = rows
        def to_pylist(self):
            return [dict(r) for r in self.rows]
        def column(self, name):
            return Column([r[name] for r in self.rows])

    class Column:
        def __init__(self, values):
            self.values = values
        def to_pylist(self):
            return self.values

    class Index:
        def __init__(self, column):
            self.name, self.columns = column + "_idx", [column]

    class Stats:
        def __init__(self, kind):
            self.distance_type = kind

    class Table:
        def __init__(self, name, data):
            self.name, self.rows, self.metric = name, data["rows"], data.get("metric")
            self.vectors = data["vectors"]
            self.schema = Schema(Field(n, "fixed_size_list<item: float>[2]" if n in self.vectors else "string") for n in self.rows[0])
        @property
        def version(self):
            return len(self.rows)
        def checkout(self, version):
            self.rows = self.rows[:version]
        def list_indices(self):
            return [Index(self.vectors[0])] if self.metric else []
        def index_stats(self, name):
            return Stats(self.metric)
        def count_rows(self):
            return len(self.rows)
        def search(self):
            return self
        def select(self, columns):
            return self
        def to_batches(self, batch_size):
            if os.environ.get("LANCE_DIES_AFTER"):
                yield Batch(self.rows[:int(os.environ["LANCE_DIES_AFTER"])])
                os.kill(os.getpid(), 9)
            for i in range(0, len(self.rows), batch_size):
                yield Batch(self.rows[i:i + batch_size])

    class Database:
        def __init__(self, folder):
            self.folder = folder
            with open(os.path.join(folder, "tables.json")) as f:
                self.data = json.load(f)
        def table_names(self, limit=10):
            return list(self.data)
        def open_table(self, name):
            if name not in self.data:
                raise ValueError("Table %r was not found" % name)
            if os.environ.get("LANCE_GROWS"):
                rows = self.data[name]["rows"]
                self.data[name]["rows"] = rows + [dict(rows[0], chunk_id="grown%d" % len(rows))]
                with open(os.path.join(self.folder, "tables.json"), "w") as f:
                    json.dump(self.data, f)
            return Table(name, self.data[name])

    def connect(folder):
        print("a line on standard output, and one on standard error")
        os.write(2, b"WARN a log line\\n")
        return Database(folder)
''')


def rows_of(n):
    return [{"chunk_id": "c%d" % i, "content": "text \u00e4 %d" % i, "vector": [float(i), 1.0], "line": i, "tags": ["a", "b"],
             "deep": {"x": i}, "none": None} for i in range(n)]


class Lance(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.folder, self.store = os.path.join(self.tmp.name, "lance"), os.path.join(self.tmp.name, "store")
        os.mkdir(self.folder)
        self.environment = dict(os.environ)

    def tearDown(self):
        self.tmp.cleanup()

    def fill(self, tables):
        """tables: name to {"rows", "vectors", "metric"}"""
        if lancedb is None:
            modules = os.path.join(self.tmp.name, "modules")
            os.makedirs(modules, exist_ok=True)
            with open(os.path.join(modules, "lancedb.py"), "w") as f:
                f.write(STAND_IN)
            self.environment["PYTHONPATH"] = modules + os.pathsep + os.environ.get("PYTHONPATH", "")
            with open(os.path.join(self.folder, "tables.json"), "w") as f:
                json.dump(tables, f)
            return
        db = lancedb.connect(self.folder)
        for name, data in tables.items():
            table = db.create_table(name, data["rows"][:1])
            if data["rows"][1:]:
                table.add(data["rows"][1:])
            if data.get("metric"):
                table.create_index(metric=data["metric"], vector_column_name=data["vectors"][0], index_type="IVF_FLAT", num_partitions=1)

    def lode(self, *words, code=0):
        done = subprocess.run([os.environ["LODE_PROGRAM"], *words], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def bring(self, *words, code=0, python=sys.executable):
        return self.lode("import", "lance", self.folder, "--to", self.store, "--python", python, *words, code=code)

    def records(self, name):
        out = self.lode("db", "export", name, "--store", self.store).stdout
        return {r["id"]: r for r in map(json.loads, out.splitlines())}

    def test_a_table_that_grows_is_taken_as_it_was_when_it_was_listed(self):
        self.fill({"notes": {"rows": rows_of(40), "vectors": ["vector"]}})
        self.environment["LANCE_GROWS"] = "1"
        growing = None
        if lancedb is not None:
            program = ("import lancedb, sys\nt = lancedb.connect(sys.argv[1]).open_table('notes')\nrow = t.search().limit(1).to_list()[0]\nrow.pop('_distance', None)\n"
                       "for i in range(100000):\n  t.add([dict(row, chunk_id='grown%d' % i)])\n  print(i, flush=True)")
            growing = subprocess.Popen([sys.executable, "-c", program, self.folder], stdout=subprocess.PIPE, text=True)
            growing.stdout.readline()
        try:
            done = json.loads(self.bring("--json").stdout.splitlines()[-1])
        finally:
            if growing:
                growing.kill()
                growing.wait()
                growing.stdout.close()
        self.assertGreaterEqual(done["records"], 41)
        self.assertEqual((done["written"], len(self.records("notes"))), (done["records"], done["records"]))
        again = json.loads(self.bring("--json").stdout.splitlines()[-1])  # and what came since
        self.assertEqual(len(self.records("notes")), again["records"])
        self.assertGreater(again["records"], done["records"])

    def test_a_table(self):
        rows = rows_of(300)
        rows += [dict(rows[7], content="the newer one")]
        self.fill({"notes": {"rows": rows, "vectors": ["vector"], "metric": "cosine"}})
        done = json.loads(self.bring("--json").stdout.splitlines()[-1])
        self.assertEqual((done["tables"], done["records"], done["written"], done["replaced"]), (1, 300, 300, 1))
        got = self.records("notes")
        self.assertEqual(len(got), 300)
        self.assertEqual(got["c7"]["document"], "the newer one")
        self.assertEqual(got["c8"]["document"], "text \u00e4 8")
        self.assertEqual(got["c8"]["embedding"], [8.0, 1.0])
        self.assertEqual(got["c8"]["metadata"], {"line": 8, "tags": ["a", "b"], "deep": "{\"x\": 8}"})
        info = json.loads(self.lode("db", "collections", "--json", "--store", self.store).stdout)
        self.assertEqual((info["name"], info["metric"]), ("notes", "cosine"))
        # again: nothing to do
        done = json.loads(self.bring("--json").stdout.splitlines()[-1])
        self.assertEqual((done["records"], done["written"]), (300, 0))

    def test_several_tables_and_columns_by_name(self):
        two = [{"name": "n%d" % i, "body": "b", "left": [1.0, 0.0], "right": [0.0, 1.0]} for i in range(3)]
        self.fill({"a": {"rows": rows_of(2), "vectors": ["vector"]}, "b": {"rows": two, "vectors": ["left", "right"]}})
        self.assertIn("several columns of vectors", self.bring(code=5).stderr)
        self.bring("--table", "b", "--vector", "right", "--id", "name", "--collection", "other", "--metric", "ip")
        self.assertEqual(self.records("other")["n1"]["embedding"], [0.0, 1.0])
        self.bring("--table", "a")
        self.assertEqual(len(self.records("a")), 2)
        self.assertIn("no column 'nix'", self.bring("--table", "a", "--id", "nix", code=5).stderr)

    @unittest.skipIf(lancedb, "with the module in its place")
    def test_a_reader_that_dies_is_started_again(self):
        self.fill({"notes": {"rows": [{k: v for k, v in r.items() if k != "chunk_id"} for r in rows_of(5000)], "vectors": ["vector"]}})
        self.environment["LANCE_DIES_AFTER"] = "2500"
        self.assertIn("start again", self.bring(code=5).stderr)
        del self.environment["LANCE_DIES_AFTER"]
        self.bring()
        self.assertEqual(len(self.records("notes")), 5000)

    def test_what_is_missing_is_said(self):
        self.fill({"notes": {"rows": rows_of(1), "vectors": ["vector"]}})
        self.assertIn("cannot be started", self.bring(python="/nowhere/python", code=1).stderr)
        self.assertIn("no such table", self.bring("--table", "nix", code=1).stderr)
        if lancedb is None:
            self.environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
            self.assertIn("pip install lancedb", self.bring(code=5).stderr)
        self.environment["PYTHONPATH"] = ""
        del self.environment["LODE_LIBRARY"]
        self.assertIn("install its wheel beside lancedb", self.bring(code=1).stderr)
        self.assertFalse(os.path.exists(self.store))


if __name__ == "__main__":
    unittest.main()
