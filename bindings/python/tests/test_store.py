"""The library through Python: what goes in comes out, errors are exceptions, handles end when they should."""
import ctypes
import io
import json
import os
import tempfile
import threading
import unittest
from unittest import mock

import lode
from lode import _abi, store
from lode._library import numpy


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.store = lode.connect(os.path.join(self.folder.name, "store"))
        self.addCleanup(self.store.close)

    def notes(self, **options):
        notes = self.store.collection("notes", create=True, **dict({"metric": "cosine"}, **options))
        notes.add(["a", "b", "c"], ["the parser reads tokens", "a lexer", None], [{"lang": "c", "n": 1}, {"lang": "go", "tags": ["x", "y"]}, None],
                  [[1, 0], [0, 1], None])
        return notes


class Records(Base):
    def test_records_come_back_as_they_were_given(self):
        rows = self.notes().get(include=("document", "metadata", "vector"))
        self.assertEqual([r.id for r in rows], ["a", "b", "c"])
        self.assertEqual(rows[1].metadata, {"lang": "go", "tags": ["x", "y"]})
        self.assertEqual([r.document for r in rows], ["the parser reads tokens", "a lexer", None])
        self.assertEqual(list(rows[0].vector), [1.0, 0.0])
        self.assertIsNone(rows[2].vector)

    def test_rows_of_a_newer_library_may_be_larger(self):
        form, values = store._row_form(store._ROW.size + 16), tuple(range(1, 12)) + (0.5, 0.25)
        rows = (store._ROW.pack(*values) + b"\xff" * 16) * 2
        self.assertEqual(list(form.iter_unpack(rows)), [values, values])

    def test_structs_are_passed_with_their_sizes(self):
        symbol, _, kinds, sizes = _abi.FUNCTIONS["lode_add"]
        self.assertEqual((symbol, len(kinds)), ("lode_add_sized", 9))
        self.assertEqual(sizes, [(3, ctypes.sizeof(_abi.lode_record)), (7, ctypes.sizeof(_abi.lode_write_result))])

    def test_any_text_survives(self):
        notes = self.store.collection("odd", create=True)
        odd = ["\0", "a\0b", "\U0001F600", "'; DROP TABLE record;--", "x" * 4000]
        notes.add(odd, odd, [{"k\0" + o: o} for o in odd])
        rows = notes.get(odd)
        self.assertEqual([(r.id, r.document, r.metadata) for r in rows], [(o, o, {"k\0" + o: o}) for o in odd])

    def test_integers_of_64_bits_stay_exact(self):
        notes = self.store.collection("big", create=True)
        notes.add(["a"], metadatas=[{"n": 9007199254740993, "m": -2**63}])
        self.assertEqual(notes.get()[0].metadata, {"n": 9007199254740993, "m": -2**63})

    def test_update_upsert_and_delete(self):
        notes = self.notes()
        self.assertEqual(notes.update(["a", "nobody"], metadatas=[{"n": None, "z": 2}, {"z": 1}]), ["nobody"])
        self.assertEqual(notes.get(["a"])[0].metadata, {"lang": "c", "z": 2})
        self.assertEqual(notes.upsert(["a", "d"], ["new", "d"]).written, 2)
        self.assertEqual(notes.get(["a"])[0].document, "new")
        self.assertEqual(notes.delete(where={"lang": "go"}), 1)
        self.assertEqual(notes.delete([]), 0)
        self.assertEqual(notes.count(), 3)

    def test_queries(self):
        notes = self.notes()
        self.assertEqual([r.id for r in notes.query([1, 0.1], k=5)], ["a", "b"])
        self.assertAlmostEqual(notes.query([2, 0])[0].distance, 0, 6)
        self.assertEqual([r.id for r in notes.query(text="parser")], ["a"])
        self.assertEqual([r.id for r in notes.query([0, 1], "parser", k=2)], ["a", "b"])
        answers = notes.query_many([[1, 0], [0, 1]], k=1, where={"lang": {"$in": ["c", "go"]}}, where_document={"$contains": "e"})
        self.assertEqual([[r.id for r in rows] for rows in answers], [["a"], ["b"]])
        self.assertEqual([s["step"] for s in notes.explain([1, 0.1], k=5)["steps"]], ["query", "vectors", "rows"])

    def test_paging_reads_everything_once(self):
        notes = self.store.collection("many", create=True)
        notes.add([str(i) for i in range(2500)])
        self.assertEqual([r.id for r in notes.iterate(page=7)], [str(i) for i in range(2500)])

    def test_facets_counters_and_stats(self):
        notes = self.notes(counters=["lang"])
        self.assertEqual(notes.facets("lang"), {"c": 1, "go": 1})
        self.assertEqual(notes.counters("lang"), {"c": 1, "go": 1})
        self.assertEqual(notes.stats()["pending"], 1)

    def test_export_and_import_are_inverse(self):
        lines = []
        self.assertEqual(self.notes().export(lines.append), 3)
        data = b"".join(lines)
        self.assertEqual(json.loads(data.splitlines()[0])["id"], "a")
        copy = self.store.collection("copy", create=True, metric="cosine")
        self.assertEqual(copy.import_lines(io.BytesIO(data).read).written, 3)
        again = []
        copy.export(again.append)
        self.assertEqual(b"".join(again), data)

    def test_an_exception_in_a_callback_comes_through(self):
        def broken(_):
            raise RuntimeError("mine")
        with self.assertRaisesRegex(RuntimeError, "mine"):
            self.notes().export(broken)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_arrays_of_numpy(self):
        notes = self.store.collection("arrays", create=True)
        rows = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
        notes.add(["a", "b", "c", "d"], vectors=rows)
        back = notes.get(include=("vector",))
        self.assertTrue(all((r.vector == row).all() for r, row in zip(back, rows)))
        self.assertEqual([r[0].id for r in notes.query_many(rows, k=1)], ["a", "b", "c", "d"])
        notes.upsert(["a"], vectors=rows[:1].astype(numpy.float64)[:, ::-1])  # another type, another order
        self.assertEqual(list(notes.get(["a"], include=("vector",))[0].vector), [2, 1, 0])


class Errors(Base):
    def test_each_status_is_an_exception_with_the_librarys_text(self):
        notes = self.notes()
        for error, do in ((lode.Exists, lambda: notes.add(["a"])), (lode.Refused, lambda: notes.add(["x", "x"])),
                          (lode.Refused, lambda: notes.add(["x"], vectors=[[1, float("nan")]])),
                          (lode.Mismatch, lambda: notes.add(["x"], vectors=[[1, 2, 3]])), (lode.Mismatch, lambda: notes.query([1, 2, 3])),
                          (lode.Invalid, lambda: notes.get(where={"$foo": 1})), (lode.NotFound, lambda: self.store.collection("nobody")),
                          (lode.Invalid, lambda: notes.delete()), (TypeError, lambda: notes.query(["x"])),
                          (lode.Invalid, lambda: notes.add(["x"], ["a", "b"])), (lode.Invalid, lambda: notes.add([1]))):
            with self.assertRaises(error) as caught:
                do()
            self.assertTrue(str(caught.exception))
        self.assertEqual(notes.count(), 3)

    def test_the_record_at_fault_is_named(self):
        with self.assertRaises(lode.Refused) as caught:
            self.notes().add(["x", "y"], vectors=[[1, 2], [1, float("inf")]])
        self.assertEqual((caught.exception.status, caught.exception.record), ("REFUSED", 1))

    def test_what_is_closed_says_so(self):
        notes = self.notes()
        self.store.close()
        self.store.close()
        for do in (notes.count, self.store.stats, lambda: self.store.collection("x")):
            self.assertRaises(lode.Closed, do)

    def test_a_transaction_is_all_or_nothing(self):
        notes = self.notes()
        with self.assertRaises(RuntimeError):
            with self.store.transaction() as txn:
                notes.delete(["a", "b"], txn=txn)
                raise RuntimeError
        self.assertEqual(notes.count(), 3)
        with self.store.transaction() as txn:
            notes.delete(["a"], txn=txn)
            notes.add(["z"], txn=txn)
        self.assertEqual([r.id for r in notes.get()], ["b", "c", "z"])

    def test_care(self):
        notes = self.notes()
        seen = []
        self.store.optimize(lambda phase, done, total: seen.append(phase))
        self.store.compact()
        self.assertEqual(self.store.verify(), [])
        file = os.path.join(self.folder.name, "backup")
        self.store.backup(file)
        lode.restore(file, os.path.join(self.folder.name, "restored"))
        with lode.connect(os.path.join(self.folder.name, "restored"), create=False, read_only=True) as copy:
            self.assertEqual(copy.collection("notes").count(), notes.count())
        report = lode.salvage(self.store.path, os.path.join(self.folder.name, "salvaged"))
        self.assertEqual((report["records"], report["losses"]), (3, []))


class Sharing(Base):
    def test_threads_share_a_handle(self):
        notes, failures = self.store.collection("shared", create=True), []

        def work(t):
            try:
                for i in range(40):
                    notes.upsert(["%d-%d" % (t, i)], vectors=[[t, i]])
                    notes.query([t, i], k=1)
            except Exception as why:
                failures.append(why)

        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual((failures, notes.count()), ([], 160))

    def test_a_forked_child_goes_on(self):
        notes = self.notes()
        pid = os.fork()
        if pid == 0:
            try:
                notes.add(["child"])
                os._exit(0 if notes.count() == 4 else 1)
            except BaseException:
                os._exit(2)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(notes.count(), 4)


class Isolated(Base):
    def test_a_killed_worker_is_an_exception_and_the_next_call_works(self):
        self.notes()
        with lode.connect(self.store.path, isolate=True) as store:
            notes = store.collection("notes")
            for _ in range(3):
                self.assertEqual(notes.count(), 3)
                os.kill(store.worker_pid, 9)
                with self.assertRaisesRegex(lode.WorkerDied, r"SIG\w+\) before it answered \w+\(\)"):
                    notes.count()
            self.assertEqual([r.id for r in notes.iterate()], ["a", "b", "c"])
            self.assertRaises(lode.Exists, notes.add, ["a"])
            self.assertEqual(notes.query([1, 0], k=1)[0].id, "a")

    def test_the_answer_of_an_interrupted_call_is_not_that_of_the_next(self):
        self.notes()
        with lode.connect(self.store.path, isolate=True) as store:
            notes = store.collection("notes")
            with mock.patch("lode.isolate.receive", side_effect=KeyboardInterrupt):
                self.assertRaises(KeyboardInterrupt, notes.count)
            self.assertEqual([r.id for r in notes.get(["b"])], ["b"])


class Interface(unittest.TestCase):
    def test_the_header_and_the_library_agree(self):
        self.assertEqual(lode.__version__, _abi.LODE_VERSION_TEXT)
        self.assertGreater(len(_abi.FUNCTIONS), 50)


class WrongArguments(Base):
    """Nothing that is passed may end the interpreter, or be taken for something else."""

    def test_one_string_is_no_list_of_its_letters(self):
        notes = self.notes()
        for call in (lambda: notes.get("ab"), lambda: notes.delete("ab"), lambda: notes.add("xy"), lambda: notes.upsert(["x"], "d"),
                     lambda: notes.query_many(texts_="parser"), lambda: self.store.collection("k", create=True, counters="lang")):
            with self.assertRaises(TypeError):
                call()
        self.assertEqual(notes.count(), 3)

    def test_numbers_are_no_texts(self):
        notes = self.notes()
        for call in (lambda: notes.get([1]), lambda: notes.query(text=5), lambda: notes.facets(7), lambda: self.store.collection(5, create=True),
                     lambda: self.store.rename("notes", 3)):
            with self.assertRaises(TypeError):
                call()

    def test_what_is_no_vector(self):
        notes = self.notes()
        for vector in ("ab", b"12345678", bytearray(8), [None, 1], [[1, 0]], [10**400, 0], 5):
            with self.assertRaises((TypeError, lode.Mismatch), msg=vector):
                notes.query(vector)
            with self.assertRaises(TypeError, msg=vector):
                notes.add(["x"], vectors=[vector])
        for call in (lambda: notes.query([]), lambda: notes.add(["x"], vectors=[[]])):  # not the same as none
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            notes.query_many([[1, 0], [1]])
        self.assertEqual(notes.count(), 3)

    def test_numbers_do_not_wrap(self):
        notes = self.notes()
        for call in (lambda: notes.get(limit=-1), lambda: notes.query([1, 0], k=-1), lambda: notes.facets("lang", limit=-1),
                     lambda: notes.get(offset=2**64), lambda: lode.connect(self.store.path, busy_ms=2**32)):
            with self.assertRaises(lode.Invalid):
                call()
        for call in (lambda: notes.get(limit="3"), lambda: notes.facets("lang", limit=None), lambda: notes.query([1, 0], k=1.5)):
            with self.assertRaises(TypeError):
                call()

    def test_paths(self):
        for path in (None, 5, object()):
            with self.assertRaises(TypeError):
                lode.connect(path)
        with self.assertRaises(ValueError):
            lode.connect(os.path.join(self.folder.name, "a\0b"))
        with self.assertRaises(ValueError):
            lode.connect("foo://bar")

    def test_a_reader_cannot_give_more_than_was_asked_for(self):
        notes = self.notes()
        with self.assertRaises(ValueError):
            notes.import_lines(lambda n: b" " * (n * 20))
        for answer in ("text", 5, None):
            with self.assertRaises(TypeError):
                notes.import_lines(lambda n: answer)

    def test_arguments_that_another_process_does_not_know(self):
        class Mine(dict):
            pass
        Mine.__qualname__ = "Mine"
        Mine.__module__ = "__main__"
        with mock.patch.object(__import__("__main__"), "Mine", Mine, create=True):
            with lode.connect(self.folder.name + "/apart", isolate=True) as store:
                notes = store.collection("notes", create=True)
                with self.assertRaises(TypeError):
                    notes.get(where=Mine())
                self.assertEqual(notes.count(), 0)

    def test_what_progress_raises_is_raised(self):
        class Stop(Exception):
            pass

        def stop(*_):
            raise Stop
        self.notes()
        for call in (self.store.optimize, self.store.verify, lambda step: self.store.backup(os.path.join(self.folder.name, "b"), step)):
            with self.assertRaises(Stop):
                call(stop)
            with self.assertRaises(TypeError):
                call(5)

    def test_transactions_end_with_what_they_belong_to(self):
        notes = self.notes()
        with self.assertRaises(TypeError):
            notes.add(["x"], txn=5)
        forgotten = self.store.transaction()
        notes.add(["x"], txn=forgotten)
        del forgotten
        notes.add(["y"])
        open_still = self.store.transaction()
        notes.add(["z"], txn=open_still)
        self.store.close()
        with self.assertRaises(lode.Closed):
            open_still.commit()
        with lode.connect(self.store.path) as again:
            self.assertEqual([r.id for r in again.collection("notes").get()], ["a", "b", "c", "y"])

    def test_an_embedder_that_is_closed(self):
        try:
            model = lode.Embedder("code")
        except lode.NotFound as why:
            self.skipTest(str(why))
        with self.assertRaises(TypeError):
            model("text")
        model.close()
        with self.assertRaises(lode.Closed):
            model(["text"])

    def test_another_model(self):
        try:
            model = lode.Embedder("code")
        except lode.NotFound as why:
            self.skipTest(str(why))
        notes = self.store.collection("words", create=True, metric="cosine")
        notes.add(["a", "b"], ["how the parser reads tokens", "where the boats are"], vectors=[[1.0, 0.0], [0.0, 1.0]])
        seen = []
        report = self.store.reembed("words", model, progress=lambda *step: seen.append(step))
        self.assertEqual((report["records"], report["embedded"], report["without_vector"]), (2, 2, 0))
        self.assertTrue(seen and seen[0][0] == "embed")
        self.assertEqual(notes.query(model(["token parser"])[0], k=1)[0].id, "a")
        with self.assertRaises(lode.NotFound):
            self.store.reembed("nobody", model)
        with self.assertRaises(ZeroDivisionError):
            self.store.collection("more", create=True).add(["a"], ["text"])
            self.store.reembed("more", model, progress=lambda *step: 1 // 0)
        model.close()
        with self.assertRaises(lode.Closed):
            self.store.reembed("words", model)


if __name__ == "__main__":
    unittest.main()
