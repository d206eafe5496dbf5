"""python -m lode.chroma PROGRAM [ARGUMENT...], or -m MODULE: runs a Python program in which chromadb is lode.chroma."""
import os
import runpy
import shutil
import sys

from lode.chroma import install


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m lode.chroma PROGRAM [ARGUMENT...]\n       python -m lode.chroma -m MODULE [ARGUMENT...]\n\n"
              "Runs a Python program in which `import chromadb` is lode.chroma. PROGRAM is a file, or a program of this\n"
              "environment that is written in Python, such as `mempalace`.", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    install()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("lode.chroma: -m needs the name of a module", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    program = arguments[0]
    if not os.path.exists(program):
        beside = os.path.join(os.path.dirname(sys.executable), program)
        program = beside if os.path.exists(beside) else shutil.which(program)
    if program is None:
        print("lode.chroma: there is no program %s" % arguments[0], file=sys.stderr)
        return 2
    sys.argv = [program] + arguments[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
