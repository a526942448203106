"""Which variable of a Dataset stands where in a file."""

import itertools
from collections.abc import Hashable, Mapping

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.capture.convention import FLAG_SLOTS, STANDARD_NAMES
from trajlab.dataset.fields import final_fields, has_own_name, is_per_transition
from trajlab.io.jsonl.specs import Place, Spec, Stands
from trajlab.io.jsonl.text import dtype_text

OBS, ACTION, REWARD, INFO, FIELDS, VALUES, SEED = "obs", "action", "reward", "info", "fields", "values", "seed"
"""Keys of lines; what has none of its own is under `fields`, or in the first line under `values`."""
OWN_KEYS = (names.TERMINATED, names.TRUNCATED, names.ITERATION)
_SLOTS = {"observation": OBS, "action": ACTION, "reward": REWARD}


def describe(ds: xr.Dataset) -> dict[str, Spec]:
    """Return the specs of a valid Dataset's variables, those that are shared without their values.

    Raises
    ------
    TypeError, ValueError
        When a variable has a dtype that has no place in a file, or is an index of several levels.
    """
    places = _step_places(ds)
    is_whole = holds_whole(ds)
    before = [name for name, place in places.items() if place[0] == OBS] if is_whole else []
    finals = {final: field for final, field in final_fields(ds).items() if field in before}
    specs = {}
    for key, variable in ds.variables.items():
        name = str(key)
        stands: Stands
        place: Place
        if name in (names.EPISODE, names.TIME, names.MASK):
            stands, place = "index", ()
        elif name in places:
            stands, place = ("before", places[name]) if name in before else ("step", _behind(name, places[name]))
        elif name in finals:
            stands, place = "final", places[finals[name]]
        elif names.EPISODE in variable.dims:
            stands, place = "episode", (name,) if name == names.ENV else (VALUES, name)
        else:
            stands, place = "shared", ()
        specs[name] = _spec(ds, key, stands, place)
    return specs


def holds_whole(ds: xr.Dataset) -> bool:
    """Say whether all steps of all episodes are there, in order: each observation is then one line before the next."""
    labels = ds.variables[names.TIME].values
    longest = int(ds.variables[names.LENGTH].values.max(initial=0))
    return bool((labels == np.arange(len(labels))).all()) and longest <= len(labels)


def _behind(name: str, place: Place) -> Place:
    """Return the place of a field where the key of the observation is for what a step led to."""
    return (FIELDS, name) if place[0] == OBS else place


def _spec(ds: xr.Dataset, key: Hashable, stands: Stands, place: Place) -> Spec:
    variable = ds.variables[key]
    dims = tuple(map(str, variable.dims))
    leading = () if stands == "shared" else (names.EPISODE, names.TIME)
    shape = tuple(size for dim, size in variable.sizes.items() if dim not in leading)
    if key in ds.indexes and ds.indexes[key].nlevels > 1:
        raise ValueError(f"{str(key)!r} is an index of several levels, which has no place in a file: ds.reset_index")
    try:
        dtype_text(variable.dtype)
    except TypeError as error:
        raise TypeError(f"{str(key)!r}: {error}") from None
    return Spec(dims, shape, variable.dtype, variable.attrs, key in ds.coords, stands, place)


def _step_places(ds: xr.Dataset) -> dict[str, Place]:
    """Return where each variable over episode and time stands in a step's line."""
    per_step = [str(name) for name, v in ds.variables.items() if is_per_transition(v) and name != names.MASK]
    places: dict[str, Place] = {name: (FIELDS, name) for name in per_step}
    for role, key in _SLOTS.items():
        leaves = [name for name in per_step if _role(ds, name) == role]
        places |= _nested(leaves, key, STANDARD_NAMES[role])
    places |= _nested([name for name in per_step if name.startswith(f"{INFO}.")], INFO, (INFO,))
    for name in per_step:
        variable = ds.variables[name]
        is_flag = name in FLAG_SLOTS and variable.dtype == np.bool_ and "previous_row" not in _convention(ds)
        if name in OWN_KEYS and variable.ndim == 2 and (is_flag or name == names.ITERATION):
            places[name] = (name,)
    return places


def _role(ds: xr.Dataset, name: str) -> str | None:
    variable = ds.variables[name]
    return variable.attrs.get(names.ROLE_ATTR) if name in ds.data_vars and has_own_name(variable, name) else None


def _convention(ds: xr.Dataset) -> str:
    return str(ds.attrs.get(names.CONVENTION_ATTR, ""))


def _nested(leaves: list[str], key: str, roots: tuple[str, ...]) -> dict[str, Place]:
    """Return the leaves' places in a tree under `key`; none where two would be in each other's way."""
    tails = {name: _tail(name, roots) for name in leaves}
    if len(leaves) == 1 and None in tails.values():
        return {leaves[0]: (key,)}
    places: dict[str, Place] = {
        name: (key, *(name.split(".") if tail is None else tail)) for name, tail in tails.items()
    }
    taken = sorted(tuple(map(str, place)) for place in places.values())
    if any(after[: len(place)] == place for place, after in itertools.pairwise(taken)):
        return {}
    return places


def _tail(name: str, roots: tuple[str, ...]) -> list[str] | None:
    """Return the keys of `obs.camera` beneath `obs`; None where it is beneath none of the roots."""
    for root in roots:
        if name == root or name.startswith(f"{root}."):
            return name[len(root) + 1 :].split(".") if name != root else []
    return None


def by_place(specs: Mapping[str, Spec], *stands: Stands) -> dict[str, Spec]:
    """Return those of the specs whose values stand so."""
    return {name: spec for name, spec in specs.items() if spec.stands in stands}
