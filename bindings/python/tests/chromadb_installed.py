"""A pytest plugin: `import chromadb` in the tests is lode.chroma."""
import lode.chroma

lode.chroma.install()
