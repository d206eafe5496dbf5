"""chromadb.utils.batch_utils."""


def create_batches(api, ids, embeddings=None, metadatas=None, documents=None):
    """Slices no longer than one call may have."""
    size = api.get_max_batch_size()
    return [tuple(None if column is None else column[at:at + size] for column in (ids, embeddings, metadatas, documents))
            for at in range(0, len(ids), size)]
