"""The version of the package, which Datasets, results and files carry."""

import functools
import importlib.metadata


@functools.cache
def package_version() -> str:
    """Return the version of trajlab, which takes a millisecond to look up."""
    return importlib.metadata.version("trajlab")
