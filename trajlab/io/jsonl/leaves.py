"""Values that become fields: which of them are like the one before, and how the others are made so."""

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from operator import getitem
from types import MappingProxyType
from typing import Any

import numpy as np

from trajlab import names
from trajlab.io.jsonl.declared import Declared
from trajlab.io.jsonl.plain import Plain
from trajlab.io.jsonl.specs import Place, Stands
from trajlab.io.jsonl.text import encode, fragment
from trajlab.padding import shown_dtype


class TypedLeaf:
    """One array in a tree of them, whose shape is fixed and whose dtype may widen.

    Parameters
    ----------
    declared : Declared
        Where its variable is declared.
    place : tuple
        The keys under which it stands in a line; joined by dots they are the variable's name.
    role : str
        Of the field.
    path : tuple
        The keys under which it stands in the tree.
    cell : tuple of int, optional
        Its shape; without, the first value tells it.
    dtype : dtype, optional
        One that values have at least.
    attrs : mapping
        Further attributes of the variable.

    Attributes
    ----------
    number : type or None
        Of numbers that may be written as they are: that of the one before.
    dtype, shape : numpy.dtype or None, tuple or None
        Of arrays that may be.
    """

    def __init__(
        self,
        declared: Declared,
        place: Place,
        role: str,
        *,
        path: tuple[Any, ...] = (),
        cell: tuple[int, ...] | None = None,
        dtype: Any = None,
        attrs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._declared, self.name, self.place, self.path = declared, ".".join(map(str, place)), place, path
        self._cell, self._dtype, self._is_declared = cell, dtype, False
        self._attrs, self._role = attrs, role
        self.number: type | None = None
        self.dtype: np.dtype | None = None
        self.shape: tuple[int, ...] | None = None

    def fits(self, value: Any) -> bool:
        """Say whether a value may be written as it is: it has the dtype and shape of the field."""
        if type(value) is np.ndarray:
            return value.shape == self.shape and value.dtype == self.dtype
        return type(value) is self.number

    def fitted(self, value: Any) -> Any:
        """Return a value as JSON in the dtype that files say, which becomes a wider one where it must.

        Raises
        ------
        ValueError
            When its shape or kind is another.
        """
        array = np.asarray(value)
        array = array.astype(shown_dtype(array.dtype), copy=False)
        cell = array.shape if self._cell is None else self._cell
        if array.shape != cell and array.squeeze().shape == tuple(n for n in cell if n != 1):
            array = array.reshape(cell)
        if array.shape != cell:
            raise ValueError(
                f"{self.name!r} has shape {array.shape}; expected {cell}, as its space or the first step says"
            )
        wide = array.dtype if self._dtype is None else _common(self._dtype, array.dtype)
        if wide is None:
            raise ValueError(f"{self.name!r} has dtype {array.dtype}; expected {self._dtype}")
        if not self._is_declared or wide != self._dtype:
            self._cell, self._dtype, self._is_declared = cell, wide, True
            self._declare()
        is_plain = wide.kind in "biuf"
        is_number = is_plain and array.dtype == wide and cell == () and isinstance(value, np.generic | int | float)
        self.number = type(value) if is_number else None
        self.dtype, self.shape = (wide, cell) if is_plain else (None, None)
        return fragment(encode(array.astype(wide)))

    def _declare(self) -> None:
        assert self._cell is not None
        attrs = {**self._attrs, names.ROLE_ATTR: self._role}
        is_before = self._role == "observation"
        stands: Stands = "before" if is_before else "step"
        self._declared.declare(self.name, stands, self.place, self._cell, self._dtype, attrs)
        if is_before:
            final = names.final_name(self.name)
            dims = tuple(f"{self.name}_dim_{axis}" for axis in range(len(self._cell)))
            about = {**self._attrs, "long_name": f"final {self.name}"}
            self._declared.declare(final, "final", self.place, self._cell, self._dtype, about, dims=dims)


def _common(ours: np.dtype, theirs: np.dtype) -> np.dtype | None:
    """Return the dtype that holds the values of both; None where texts and numbers meet."""
    if (ours.kind == "U") != (theirs.kind == "U"):
        return None
    return np.promote_types(ours, theirs)


class Tree:
    """The arrays in what an environment takes or returns: one, or several in dicts and tuples."""

    number = dtype = shape = None  # of no value at once can be said that it may be written as it is

    def __init__(self, leaves: Sequence[TypedLeaf], plain: Plain) -> None:
        """Look at some leaves; what else there is has no fixed shape, and is no variable."""
        self._leaves, self._plain = {leaf.path: leaf for leaf in leaves}, plain

    def fits(self, tree: Any) -> bool:
        """Say whether all leaves may be written as they are."""
        return all(leaf.fits(reduce(getitem, path, tree)) for path, leaf in self._leaves.items())

    def fitted(self, tree: Any, path: tuple[Hashable, ...] = ()) -> Any:
        """Return a tree as `dumps` takes it."""
        if path in self._leaves:
            return self._leaves[path].fitted(tree)
        if isinstance(tree, Mapping):
            return {str(key): self.fitted(one, (*path, key)) for key, one in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.fitted(one, (*path, place)) for place, one in enumerate(tree)]
        return self._plain(tree)


def tree_of(leaves: Sequence[TypedLeaf], plain: Plain) -> TypedLeaf | Tree:
    """Return some leaves as a tree: the leaf itself where it is all there is."""
    return leaves[0] if len(leaves) == 1 and not leaves[0].path else Tree(leaves, plain)
