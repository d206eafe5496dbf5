"""Requests generated from the OpenAPI file of a Chroma server, sent to it and to `lode serve`, and the answers compared.

    python openapi_requests.py http://127.0.0.1:CHROMA http://127.0.0.1:LODE [--seed N] [--count N] [--show]

Both servers must allow a reset: each begins empty and holds the same few records before every request. A request is one of the
endpoints of the file with a body that is well formed, in which one or two fields have another value that their schema allows, or does
not allow. Answers are the same if the status is, and for a success the body, for an error its name (the texts differ), and if the
records are the same afterwards. What Chroma answers by closing the connection or with 500 is counted apart: there Lode need not do the
same. --show lists the others. Exit code 1 if fewer than 98 of 100 are the same.
"""
import argparse
import copy
import json
import random
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

VECTORS = [[0.1, 0.2, 0.3], [0.9, 0.1, 0.0], [0.0, 1.0, 0.5], [0.4, 0.4, 0.4]]
RECORDS = {"ids": ["a", "b", "c", "d"], "embeddings": VECTORS, "documents": ["alpha fox", "beta fox", None, "delta"],
           "metadatas": [{"n": 1, "s": "x", "f": 1.5, "t": True}, {"n": 2, "s": "y", "tags": ["p", "q"]}, None, {"n": 4, "f": 0.25}],
           "uris": ["file://a", None, None, None]}
ODD = [None, True, False, 0, 1, -1, 3, 2 ** 31, 2 ** 53 + 1, 2 ** 63 - 1, 2 ** 64, 0.5, -0.0, 1e300, "", "a", "zz", "x" * 600, "\u00e9\u4e2d\U0001f600", "a/b", [], [1], [1.5, 2],
       ["a"], ["a", "a"], ["zz"], [None], [True, False], [[]], [[1.0, 2.0]], [[1.0, 2.0, 3.0]], {}, {"a": 1}, {"a": None}, {"a": {}}, {"a": []}, {"$and": []}]
WHERE = [{"n": 1}, {"n": {"$gt": 1}}, {"n": {"$gte": 2.0}}, {"n": {"$in": [1, 4]}}, {"n": {"$nin": [1]}}, {"s": {"$ne": "x"}}, {"t": True}, {"f": {"$lt": 1}},
         {"tags": {"$contains": "p"}}, {"tags": {"$not_contains": "p"}}, {"$and": [{"n": 1}, {"s": "x"}]}, {"$or": [{"n": 1}, {"n": 4}]}, {"$and": []}, {"$or": []},
         {"$and": [{"n": 1}]}, {"$not": {"n": 1}}, {}, {"n": {}}, {"n": {"$foo": 1}}, {"n": {"$in": []}}, {"n": {"$in": [1, "x"]}}, {"n": {"$in": [1, 2.5]}}, {"n": None},
         {"n": 1, "s": "x"}, {"n": {"$gt": 1, "$lt": 4}}, {"s": {"$gt": "a"}}, {"t": {"$gt": True}}, {"#document": {"$contains": "fox"}}, {"#document": "fox"},
         {"$and": {"n": 1}}, [], "n", 7, {"n": {"$eq": None}}, {"n": {"$eq": [1]}}, {"missing": {"$ne": 1}}, {"n": {"$contains": 1}}, {"": 1}, {"$n": 1}, {"f": {"$in": [0.25, 1.5]}}]
DOCUMENT = [{"$contains": "fox"}, {"$not_contains": "fox"}, {"$regex": "^a.*x$"}, {"$not_regex": "fox"}, {"$and": [{"$contains": "a"}, {"$contains": "fox"}]},
            {"$or": [{"$contains": "delta"}, {"$regex": "beta"}]}, {"$contains": ""}, {"$contains": 1}, {"$contains": None}, {"$regex": "("}, {"$foo": "a"}, {}, [], "fox",
            {"$and": []}, {"$or": [{"$contains": "fox"}]}, {"$contains": "fox", "$regex": "a"}, {"x": {"$contains": "fox"}}, {"$regex": ""}, {"$regex": "(?i)FOX"}]
METADATA = [{"k": "v"}, {"k": 1, "l": 2.5, "m": False}, {"k": None}, {}, {"k": []}, {"k": [1, 2]}, {"k": [1.5, 2]}, {"k": [1, "a"]}, {"k": ["a", None]}, {"k": {"x": 1}},
            {"": 1}, {"chroma:document": "x"}, {"#k": 1}, {"$k": 1}, {"k": 2 ** 63 - 1}, {"k": 2 ** 64}, {"k": [True, False]}, {"k": [[1]]}, {"k": "x" * 5000},
            {"hnsw:space": "cosine"}, {"hnsw:space": "foo"}, {"hnsw:M": 32}, {"hnsw:M": "a"}, {"hnsw:space": 1}]
CONFIGURATION = [None, {}, {"hnsw": {"space": "cosine"}}, {"hnsw": {"ef_search": 50, "max_neighbors": 8}}, {"hnsw": {"space": "manhattan"}}, {"hnsw": {"foo": 1}}, {"hnsw": None},
                 {"spann": {"space": "ip"}}, {"spann": {"search_nprobe": 20}}, {"hnsw": {}, "spann": {}}, {"embedding_function": {"type": "legacy"}}, {"foo": 1},
                 {"embedding_function": {"type": "known", "name": "default", "config": {}}}, {"embedding_function": {"type": "zzz"}}, {"hnsw": {"resize_factor": 1.5}},
                 {"hnsw": {"sync_threshold": 1}}, {"hnsw": {"ef_construction": -5}}, {"hnsw": {"num_threads": 0}}, {"hnsw": {"ef_search": 1.5}}, [], "x"]


def _index(name, enabled):
    return {name: {"enabled": enabled, "config": {}}}


def _vector(**config):
    return {"float_list": {"vector_index": {"enabled": True, "config": config}}}


SCHEMA = [None, {}, {"defaults": {}, "keys": {}}, {"defaults": {}, "keys": {"#embedding": _vector(space="cosine")}},
          {"defaults": {"string": _index("string_inverted_index", False)}, "keys": {}}, {"defaults": {}, "keys": {"k": {"int": _index("int_inverted_index", False)}}},
          {"defaults": {}, "keys": {"#embedding": _vector(space="ip", hnsw={"ef_search": 33})}}, {"defaults": {}, "keys": {"#embedding": _vector(spann={"search_nprobe": 9})}},
          {"defaults": {}, "keys": {"#embedding": _vector(space="zz")}}, {"defaults": {}, "keys": {"k": _vector(space="l2")}}, {"defaults": {"string": 3}, "keys": {}},
          {"defaults": {}, "keys": {"k": {"sparse_vector": _index("sparse_vector_index", True)}}}, {"defaults": [], "keys": {}}, {"defaults": {}},
          {"defaults": {}, "keys": {"#document": {"string": _index("fts_index", False)}}}, {"defaults": {}, "keys": {"k": {"string": _index("fts_index", True)}}},
          {"defaults": {}, "keys": {"#embedding": _vector(hnsw={"sync_threshold": 1})}}, {"defaults": {}, "keys": {"#embedding": _vector(source_key="k")}}]
GOOD = {"where": WHERE, "where_document": DOCUMENT, "metadata": METADATA, "new_metadata": METADATA, "configuration": CONFIGURATION,
        "new_configuration": CONFIGURATION, "schema": SCHEMA,
        "ids": [["a"], ["e"], ["a", "b"], ["d", "a", "c"], ["zz"], [], ["a", "a"], [""], ["e", "f", "e"], ["x" * 300]],
        "embeddings": [VECTORS[:1], VECTORS[:2], [[1.0, 2.0]], [[]], [], [None], ["AACAPwAAAEAAAEBA"], ["!!"], [[1, 2, 3]], [["a", 1, 2]], [[1e39, 0, 0]], [[1e-50, 0, 0]]],
        "query_embeddings": [VECTORS[:1], VECTORS[1:3], [[1.0, 2.0]], [[]], [], [None], ["AACAPwAAAEAAAEBA"], [[1, 2, 3]], [["a", 1, 2]]],
        "n_results": [1, 2, 10, 0, 1000, -1, 1.5, "3"], "limit": [0, 1, 2, 100, -1, "1"], "offset": [0, 1, 3, 100, -1],
        "include": [[], ["documents"], ["metadatas", "uris"], ["embeddings", "distances"], ["foo"], ["documents", "documents"], "documents", [None]],
        "documents": [["new text"], [None], [""], ["a", "b"], [], [3], None], "uris": [["file://z"], [None], [], [1], None],
        "metadatas": [[m] for m in METADATA] + [[None], [], None, [{"a": 1}, {"b": 2}]],
        "name": ["fresh", "notes", "ab", "a" * 512, "a" * 513, "a..b", "-ab", "ab_", "1.2.3.4", "white space", "a.b-c_d", "\u00e9t\u00e9", ""],
        "new_name": ["fresh", "other", "notes", "ab", "a..b", "-ab", ""], "get_or_create": [True, False, "true", 1]}
BASE = {"add": {"ids": ["e"], "embeddings": VECTORS[:1], "documents": ["new text"], "metadatas": [{"n": 5}]},
        "upsert": {"ids": ["a"], "embeddings": VECTORS[1:2], "documents": ["changed"], "metadatas": [{"n": 9}]},
        "update": {"ids": ["a"], "documents": ["changed"], "embeddings": VECTORS[1:2], "metadatas": [{"n": None}]},
        "get": {"ids": ["a", "b"]}, "query": {"query_embeddings": VECTORS[:1], "n_results": 3}, "delete": {"ids": ["a"]},
        "create_collection": {"name": "fresh"}, "put": {"new_name": "fresh"}, "tenants": {"name": "tenant_two"}, "databases": {"name": "db_two"}}


DEFAULTS = ("default_tenant", "default_database", "@notes")


class Server:
    def __init__(self, address):
        self.address, self.ids, self.changed = address, {}, True

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, self._read(answer)
        except urllib.error.HTTPError as why:
            return why.code, self._read(why)
        except (OSError, ValueError) as why:
            return 0, str(why)

    @staticmethod
    def _read(answer):
        text = answer.read()
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text.decode("utf-8", "replace")

    def begin(self):
        """Empty but for two collections, which are the same each time; after a request that changed nothing it is so already."""
        if not self.changed:
            return
        self.changed = False
        self.send("POST", "/api/v2/reset")
        base = "/api/v2/tenants/default_tenant/databases/default_database/collections"
        for name in ("notes", "other"):
            self.ids[name] = self.send("POST", base, {"name": name, "metadata": {"topic": name}})[1]["id"]
        self.send("POST", "%s/%s/add" % (base, self.ids["notes"]), RECORDS)


def properties(document, schema):
    """Names of the fields of a body."""
    if "$ref" in schema:
        return properties(document, document["components"]["schemas"][schema["$ref"].split("/")[-1]])
    names = list(schema.get("properties", ()))
    for part in schema.get("allOf", ()):
        names += properties(document, part)
    return names


def endpoints(document):
    for path, methods in sorted(document["paths"].items()):
        for method, what in sorted(methods.items()):
            content = what.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            query = [p["name"] for p in what.get("parameters", ()) if p["in"] == "query"]
            yield method.upper(), path, query, None if content is None else properties(document, content)


def base_body(method, path):
    last = path.rsplit("/", 1)[-1]
    if method == "POST" and last == "collections":
        last = "create_collection"
    return copy.deepcopy(BASE.get("put" if method == "PUT" else last, {}))


def generate(random_, choices):
    method, path, query, fields = random_.choice(choices)
    body = None
    if fields is not None:
        body = base_body(method, path)
        for name in random_.sample(fields, min(len(fields), random_.choice((0, 1, 1, 1, 2)))):
            roll = random_.random()
            if roll < 0.1:
                body.pop(name, None)
            elif roll < 0.7 and name in GOOD:
                body[name] = copy.deepcopy(random_.choice(GOOD[name]))
            else:
                body[name] = copy.deepcopy(random_.choice(ODD))
    words = {"tenant": "default_tenant", "tenant_name": "default_tenant", "database": "default_database", "collection_id": "@notes", "crn": "a:b:c",
             "name": "f", "function_name": "f"}
    for name in words:
        if random_.random() < 0.04:
            words[name] = random_.choice(["nope", "x" * 300, "00000000-0000-0000-0000-000000000000", "\u00e9", "a b", "@other"])
    asked = {name: random_.choice(["0", "1", "5", "-1", "x", "1.5", ""]) for name in query if random_.random() < 0.5}
    return method, path, words, asked, body


def spell(server, method, path, words, asked):
    """The path for one server: collections are named @NAME where the API wants an id."""
    by_name = path.endswith("/collections/{collection_id}") and method in ("GET", "DELETE")

    def word(match):
        value = words.get(match.group(1), "x")
        if value.startswith("@"):
            value = value[1:] if by_name else server.ids[value[1:]]
        return urllib.parse.quote(value, safe="")
    query = "?" + urllib.parse.urlencode(asked) if asked else ""
    return re.sub(r"\{(\w+)\}", word, path) + query


def forget_discovered(schema):
    """Chroma notes each metadata key that it has seen in the schema, with the indexes of the defaults: that says nothing."""
    for key in list(schema["keys"]):
        if not key.startswith("#") and all(schema["defaults"].get(kind) == indexes for kind, indexes in schema["keys"][key].items()):
            del schema["keys"][key]


def plain(server, status, body):
    """What is compared: without ids, clocks and the texts of errors."""
    if status >= 400:
        return status, body.get("error") if isinstance(body, dict) else None
    text = json.dumps(body, sort_keys=True)
    for name, id in server.ids.items():
        text = text.replace(id, name)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r'"nanosecond heartbeat": \d+', '"nanosecond heartbeat": 0', text)
    text = re.sub(r'"max_batch_size": \d+', '"max_batch_size": 0', text)
    text = re.sub(r"-?\d+\.\d{5,}(e-?\d+)?", lambda m: "%.4f" % float(m.group(0)), text)
    found = json.loads(text)
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, dict) and isinstance(item.get("schema"), dict):
            forget_discovered(item["schema"])
    if isinstance(found, list) and found and isinstance(found[0], dict) and "name" in found[0]:
        found.sort(key=lambda item: item["name"])  # neither promises an order
    return status, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chroma")
    parser.add_argument("lode")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    servers = [Server(options.chroma), Server(options.lode)]
    choices = []
    for endpoint in endpoints(servers[0].send("GET", "/openapi.json")[1]):
        choices += [endpoint] * (6 if endpoint[3] and re.search(r"(add|update|upsert|get|query|delete|collections)$", endpoint[1]) else 1)
    random_ = random.Random(options.seed)
    same = unanswered = 0
    for number in range(options.count):
        method, path, words, asked, body = generate(random_, choices)
        answers, after = [], []
        for server in servers:
            server.begin()
            status, answer = server.send(method, spell(server, method, path, words, asked), body)
            answers.append(plain(server, status, answer))
            server.changed = not (400 <= status < 500 or method == "GET" or path.endswith(("/get", "/query", "/search")))
            everything = "/api/v2/tenants/default_tenant/databases/default_database/collections/%s/get" % server.ids["notes"]
            after.append(plain(server, *server.send("POST", everything, {"include": ["documents", "metadatas", "embeddings", "uris"]})))
            if server is servers[0]:
                real = answer
        if answers[0][0] in (0, 500):
            unanswered += 1
        elif answers[0] == answers[1] and after[0] == after[1]:
            same += 1
        elif options.show:
            print("%d %s %s %s %s\n  chroma %s %s\n  lode   %s" % (number, method, path.split("{database}")[-1],
                                                            [w for w in (words["tenant"], words["database"], words["collection_id"]) if w not in DEFAULTS] + list(asked.items()), json.dumps(body)[:300], json.dumps(answers[0])[:300],
                                                            real.get("message", "")[:200] if isinstance(real, dict) else "", json.dumps([answers[1], answer])[:400]))
            if after[0] != after[1] and answers[0] == answers[1]:
                print("  afterwards\n  chroma %s\n  lode   %s" % (json.dumps(after[0])[:400], json.dumps(after[1])[:400]))
    answered = options.count - unanswered
    print("%d requests of seed %d: %d that Chroma answers, %d of them the same; %d end in a crash or in 500 there"
          % (options.count, options.seed, answered, same, unanswered))
    sys.exit(same < 0.98 * answered)


if __name__ == "__main__":
    main()
