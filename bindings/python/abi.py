"""Reads include/lode.h and writes lode/_abi.py: its constants, structs and functions for ctypes.

The header is the one description of the interface; nothing of it is written twice. It keeps to a form that this reader understands
(docs/PYTHON.md): anything else is an error here, never a guess.

    python3 abi.py include/lode.h > lode/_abi.py
"""
import re
import sys

SCALARS = {
    "bool": "c_bool", "char": "c_char", "int": "c_int", "unsigned": "c_uint", "float": "c_float", "double": "c_double",
    "size_t": "c_size_t", "int64_t": "c_int64", "uint64_t": "c_uint64", "uint32_t": "c_uint32", "uint8_t": "c_uint8", "void": None,
}


def fail(text):
    sys.exit("abi.py: " + text)


def clean(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = text.replace("\\\n", " ")
    text = re.sub(r"^\s*#\s*(ifndef|ifdef|if|else|endif|include|undef)\b.*$", "", text, flags=re.M)
    return text.replace('extern "C" {', "")


class Header:
    def __init__(self, text):
        text = clean(text)
        self.constants = {}
        self.statuses = [(name, about) for name, about in re.findall(r'X\((\w+),\s*"([^"]*)"\)', text)]
        for name, value in re.findall(r"^\s*#define\s+(LODE_\w+)[ \t]+(\S.*?)\s*$", text, flags=re.M):
            self.constant(name, value)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        text = text.replace(" LODE_MUST_TYPE ", " ")  # for compilers
        self.enums, self.callbacks, self.opaque, self.structs, self.functions = set(), {}, [], {}, []
        for body in re.findall(r"\benum\s*\{(.*?)\}\s*;", text, flags=re.S):
            self.enumerate(body)
        for body, name in re.findall(r"typedef\s+enum\s+(?:LODE_MUST_TYPE\s+)?\w+\s*\{(.*?)\}\s*(\w+)\s*;", text, flags=re.S):
            self.enums.add(name)
            if name != "lode_status":
                self.enumerate(body)
        text = re.sub(r"(typedef\s+)?enum\s*\w*\s*\{.*?\}\s*\w*\s*;", "", text, flags=re.S)
        bodies = re.findall(r"typedef\s+struct\s+(\w+)\s*\{(.*?)\}\s*\1\s*;", text, flags=re.S)
        text = re.sub(r"typedef\s+struct\s+(\w+)\s*\{.*?\}\s*\1\s*;", "", text, flags=re.S)
        self.opaque = re.findall(r"typedef\s+struct\s+(\w+)\s+\1\s*;", text)
        text = re.sub(r"typedef\s+struct\s+\w+\s+\w+\s*;", "", text)
        self.names = {name for name, _ in bodies} | set(self.opaque)
        for result, name, params in re.findall(r"typedef\s+([\w ]+?)\s*(\w+)\s*\(([^;]*?)\)\s*;", text, flags=re.S):
            self.callbacks[name] = (result.strip(), params)
        text = re.sub(r"typedef\s+[\w ]+\([^;]*\)\s*;", "", text)
        for name, body in bodies:
            self.structs[name] = [self.field(part.strip()) for part in body.split(";") if part.strip()]
        for result, name, params in re.findall(r"LODE_API\s+([\w \*]+?)\s*(\w+)\s*\(([^;]*)\)\s*;", text, flags=re.S):
            self.functions.append((name, result.strip(), self.split(params)))

    def constant(self, name, value):
        if name in ("LODE_API", "LODE_MUST", "LODE_STATUSES") or "(X)" in value:
            return
        if value.startswith('"'):
            self.constants[name] = value
        elif value == "SIZE_MAX":
            self.constants[name] = str(2 ** 64 - 1)
        elif re.fullmatch(r"[\d\s()<u]+", value):
            self.constants[name] = str(eval(value.replace("u", "")))  # digits, shifts and parentheses only

    def enumerate(self, body):
        at = 0
        for item in filter(None, (part.strip() for part in body.split(","))):
            name, _, value = (part.strip() for part in item.partition("="))
            at = int(value, 0) if value else at
            self.constants[name] = str(at)
            at += 1

    @staticmethod
    def split(params):
        parts, depth, at = [], 0, ""
        for c in params:
            depth += (c == "(") - (c == ")")
            if c == "," and depth == 0:
                parts.append(at)
                at = ""
            else:
                at += c
        return [p.strip() for p in parts + [at] if p.strip() not in ("", "void")]

    def kind(self, text):
        words = text.replace("*", " * ").split()
        words = [w for w in words if w not in ("const", "struct")]
        stars, base = words.count("*"), " ".join(w for w in words if w != "*")
        if base in self.enums:
            base = "c_int"
        elif base in SCALARS:
            if base == "char" and stars == 1:
                return "c_char_p"
            if base == "void" or base == "float" and stars:  # vectors are addresses, whoever owns them
                return "c_void_p" if stars == 1 else "POINTER(c_void_p)" if stars else "None"
            base = SCALARS[base]
        elif base in self.callbacks:
            return base  # a pointer to a function, written with or without its star
        elif base not in self.names:
            fail("what is %r?" % text)
        for _ in range(stars):
            base = "POINTER(%s)" % base
        return base

    def parameter(self, text):
        match = re.fullmatch(r"(.*?[\s\*])(\w+)(\[\d*\])?", text, flags=re.S)
        return self.kind(match.group(1) + ("*" if match.group(3) else "")) if match else self.kind(text)

    def field(self, text):
        pointer = re.fullmatch(r"([\w ]+?)\s*\(\*(\w+)\)\((.*)\)", text, flags=re.S)
        if pointer:
            result, name, params = pointer.groups()
            return [(name, self.function_type(result, params))]
        match = re.fullmatch(r"((?:const\s+|struct\s+)*\w+)\s+(.*)", text, flags=re.S)
        if not match:
            fail("which field is %r?" % text)
        fields = []
        for declarator in match.group(2).split(","):
            item = re.fullmatch(r"([\*\s]*)(\w+)(?:\[(\d+)\])?", declarator.strip())
            kind = self.kind(match.group(1) + item.group(1))
            fields.append((item.group(2), "%s * %s" % (kind, item.group(3)) if item.group(3) else kind))
        return fields

    def function_type(self, result, params):
        kinds = ["c_void_p" if k.startswith("POINTER") else k for k in (self.parameter(p) for p in self.split(params))]
        return "CFUNCTYPE(%s)" % ", ".join([self.kind(result)] + kinds)

    def write(self, out):
        put = lambda *lines: [out.write(line + "\n") for line in lines]  # noqa: E731
        put('"""Made by abi.py from lode.h. Do not edit."""', "from ctypes import *  # noqa: F401,F403", "")
        for name, value in sorted(self.constants.items()):
            put("%s = %s" % (name, value))
        put("STATUSES = {")
        for i, (name, about) in enumerate(self.statuses):
            put("    %d: (%r, %r)," % (i, name, about))
        put("}", "")
        order = list(self.opaque) + self.ordered()
        for name in order:
            put("class %s(Structure):" % name, "    pass", "", "")
        for name, (result, params) in self.callbacks.items():
            put("%s = %s" % (name, self.function_type(result, params)))
        for name in order:
            if name in self.structs:
                put("%s._fields_ = [" % name)
                for fields in self.structs[name]:
                    for field, kind in fields:
                        put("    (%r, %s)," % (field, kind))
                put("]")
        put("", "FUNCTIONS = {")
        for name, result, params in self.functions:
            kinds = [self.parameter(p) for p in params]
            # sizes are passed by the caller of lode_x_sized(), which Python knows as lode_x()
            sizes = [(i, kinds[i - 1].replace("POINTER", "sizeof")) for i, p in enumerate(params) if re.fullmatch(r"size_t \w+_size", p)]
            put("    %r: (%r, %s, [%s], [%s])," % (name[:-len("_sized")] if sizes else name, name, self.kind(result), ", ".join(kinds),
                                                   ", ".join("(%d, %s)" % size for size in sizes)))
        put("}")

    def ordered(self):
        """Structs behind those that they hold."""
        done, left = [], list(self.structs)
        while left:
            for name in left:
                needs = {k.split(" * ")[0] for fields in self.structs[name] for _, k in fields} & set(left)
                if not needs - {name}:
                    done.append(name)
                    left.remove(name)
                    break
            else:
                fail("structs that hold each other: %s" % left)
        return done


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        Header(file.read()).write(sys.stdout)
