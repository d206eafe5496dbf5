"""chromadb.utils.data_loaders."""


class ImageLoader:
    """Loads images of uris, with Pillow and numpy."""

    def __call__(self, uris):
        import numpy
        from PIL import Image
        return [None if uri is None else numpy.array(Image.open(uri)) for uri in uris]
