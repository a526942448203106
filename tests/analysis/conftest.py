"""The hand-made Datasets of tests/dataset/, for what is computed from them."""

from dataset.conftest import counts, ds, lazy, loaded, make, make_lazy

__all__ = ["counts", "ds", "lazy", "loaded", "make", "make_lazy"]
