"""Schema 1, checked: what every function of trajlab may rely on in a Dataset."""

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.fields import is_episode_field
from trajlab.dataset.schema_values import deep_problems
from trajlab.dataset.windows import is_windows
from trajlab.errors import raise_all
from trajlab.padding import padding_text, shown_as

_INT, _BOOL, _TEXT = "int64", "bool", "str"
_COORDS = dict.fromkeys(names.EPISODE_COORDS, _INT) | {
    names.END_REASON: _TEXT,
    names.COMPLETE: _BOOL,
    names.START_SEEN: _BOOL,
    names.FINAL_KNOWN: _BOOL,
}
_WINDOWS = (
    "this is a Dataset of windows, as trajlab.align makes it, with lag in place of time: trajlab.state_trace and "
    "plot_state_trace take it, all else takes the Dataset ds that it was made from. To count actions around the event: "
    "near = ds.sel(episode=windows.episode); trajlab.action_histogram("
    "near.assign(since=(near.time - windows.event_time).T), by='since', groups=range(-5, 7))"
)
_MEND = "a plain xarray.concat does that where lengths differ; put recordings together with trajlab.concat"


def validate(ds: xr.Dataset, *, deep: bool = False) -> None:
    """Raise ValueError with every problem at once where a Dataset is not of schema 1.

    Any Dataset that passes can be analysed, also one sliced, filtered, reordered, loaded from a file, or with
    variables and coordinates added.

    Parameters
    ----------
    ds : xarray.Dataset
        Dims ``episode`` and ``time``.
    deep : bool
        Read the fields, too, a slab at a time: whether `mask` is ``time < length``, the padding of what was
        recorded is padding, and flags that stand on their own row agree with `end_reason`. Otherwise only
        names, dims, dtypes, attributes, the labels of `episode` and `time` and the coordinates over `episode`
        are looked at, and no field is fetched.

    Raises
    ------
    ValueError
        Listing what is wrong, what was expected and the mend; also for the windows that `align` makes.
    TypeError
        When `ds` is no Dataset.

    Examples
    --------
    >>> import numpy as np, trajlab as tl
    >>> ds = tl.from_episodes([{"reward": np.array([1.0, 0.0])}, {"reward": np.array([2.0])}])
    >>> tl.validate(ds, deep=True)
    >>> tl.validate(ds.isel(episode=1))
    Traceback (most recent call last):
    ValueError: not a Dataset of trajlab: a single episode was selected, ...
    """
    if is_windows(ds):
        raise ValueError(_WINDOWS)
    raise_all(find_problems(ds, deep=deep), "not a Dataset of trajlab")


def find_problems(ds: object, *, deep: bool = False) -> list[str]:
    """Return what `validate` raises, one text for each problem."""
    result = _result_problem(ds)
    if not isinstance(ds, xr.Dataset):
        raise TypeError(
            f"expected an xarray.Dataset of episodes, as Recorder.to_dataset() makes it; got {type(ds).__name__}"
            f"{', ' if result else ''}{result}"
        )
    if result:
        return [f"got {result}"]  # the rest would only follow from it
    if other := _single_problem(ds) or _transitions_problem(ds):
        return [other]
    problems = [
        *_attrs_problems(ds),
        *_index_problems(ds),
        *_coord_problems(ds),
        *_mask_problems(ds),
        *_variable_problems(ds),
    ]
    if not problems:
        problems = _value_problems(ds)
    if deep and not problems:
        problems = deep_problems(ds)
    return problems


def require_whole(ds: xr.Dataset, what: str) -> None:
    """Raise ValueError unless every step from 0 to the longest length is there.

    Parameters
    ----------
    ds : xarray.Dataset
        Valid.
    what : str
        What needs whole episodes: ``"returns"``.
    """
    longest = int(ds.variables[names.LENGTH].values.max(initial=0))
    if np.array_equal(ds.variables[names.TIME].values[:longest], np.arange(longest)):
        return  # as nearly always, and told sooner than by sorting
    missing = np.setdiff1d(np.arange(longest), ds.variables[names.TIME].values)
    if len(missing):
        mend = f", or select episodes that are whole: ds.isel(episode=ds.length.values <= {missing[0]})"
        raise ValueError(
            f"{what}: whole episodes are needed, and {len(missing)} of the {longest} steps of the longest one "
            f"are not in this Dataset (the first is time {missing[0]}). Call it before slicing `time`"
            f"{mend if missing[0] else ''}"
        )


def _result_problem(ds: object) -> str:
    """Return what to say of the result of an analysis, given in place of what it was made from; else nothing."""
    attrs = getattr(ds, "attrs", {})
    has_episodes = isinstance(ds, xr.Dataset) and {names.LENGTH, names.TIME} <= set(ds.variables)
    if names.MADE_BY_ATTR not in attrs or names.SCHEMA_ATTR in attrs or has_episodes:
        return ""
    return (
        f"a result of {attrs[names.MADE_BY_ATTR]}; pass the Dataset of episodes that it was made from. Plots take "
        "that, too, and make the numbers that they draw"
    )


def _single_problem(ds: xr.Dataset) -> str | None:
    """Return the problem of a Dataset from which one episode or one step was taken."""
    for dim in (names.EPISODE, names.TIME):
        if dim not in ds.dims and dim in ds.coords and ds.variables[dim].ndim == 0:
            label = ds.variables[dim].values.item()
            is_padded = dim == names.EPISODE and names.MASK in ds.coords and not ds.coords[names.MASK].values.all()
            also = f", or take trajlab.episode(ds, {label}), which has no padding" if is_padded else ""
            return (
                f"a single {'episode' if dim == names.EPISODE else 'step'} was selected, so the dim {dim!r} is "
                f"gone. Keep it with a list, ds.sel({dim}=[{label}]){also}"
            )
    return None


def _transitions_problem(ds: xr.Dataset) -> str | None:
    """Return the problem of what `transitions` made, in which episodes are gone."""
    if names.TRANSITION not in ds.dims or names.EPISODE in ds.dims:
        return None
    return "got transitions, one after the other; pass the Dataset of episodes that they were made from"


def _attrs_problems(ds: xr.Dataset) -> list[str]:
    schema = ds.attrs.get(names.SCHEMA_ATTR)
    if schema is None:
        return [
            f"attrs[{names.SCHEMA_ATTR!r}] is missing; where an operation dropped the attributes, put it back: "
            f"ds.attrs[{names.SCHEMA_ATTR!r}] = {names.SCHEMA}"
        ]
    if schema != names.SCHEMA:
        return [f"attrs[{names.SCHEMA_ATTR!r}] is {schema!r}; this version of trajlab reads schema {names.SCHEMA}"]
    return []


def _index_problems(ds: xr.Dataset) -> list[str]:
    problems = []
    for dim in (names.EPISODE, names.TIME):
        if dim not in ds.dims:
            problems.append(f"the dim {dim!r} is missing; there are: {', '.join(map(str, ds.dims)) or 'none'}")
        elif dim not in ds.coords:
            problems.append(f"the dim {dim!r} has no labels; expected an int64 coordinate of that name")
        elif (dtype := ds.variables[dim].dtype) != np.int64:
            problems.append(f"the coordinate {dim!r} has dtype {dtype}; expected int64")
        else:
            problems += _label_problems(dim, ds.variables[dim].values)
    return problems


def _label_problems(dim: str, labels: np.ndarray) -> list[str]:
    if len(labels) and labels[0] >= 0 and (np.diff(labels) > 0).all():
        return []  # as most are, and told sooner than by sorting
    problems = []
    unique, counts = np.unique(labels, return_counts=True)
    if (counts > 1).any():
        twice = ", ".join(map(str, unique[counts > 1][:5]))
        mend = "; trajlab.concat renumbers the episodes of several recordings" if dim == names.EPISODE else ""
        problems.append(f"labels of {dim!r} occur more than once ({twice}){mend}")
    if len(unique) and unique[0] < 0:
        problems.append(f"{dim!r} has the label {unique[0]}; expected 0 or more")
    return problems


def _coord_problems(ds: xr.Dataset) -> list[str]:
    return [problem for name, kind in _COORDS.items() for problem in _one_coord(ds, name, (names.EPISODE,), kind)]


def _mask_problems(ds: xr.Dataset) -> list[str]:
    return _one_coord(ds, names.MASK, (names.EPISODE, names.TIME), _BOOL)


def _one_coord(ds: xr.Dataset, name: str, dims: tuple[str, ...], kind: str) -> list[str]:
    if name not in ds.variables:
        return [f"the coordinate {name!r} over ({', '.join(dims)}) is missing"]
    problems = []
    variable = ds.variables[name]
    if name not in ds.coords:
        problems.append(f"{name!r} is a data variable; make it a coordinate: ds.set_coords({name!r})")
    if variable.dims != dims:
        problems.append(f"{name!r} has dims ({', '.join(map(str, variable.dims))}); expected ({', '.join(dims)})")
    right = variable.dtype.kind in "UOT" if kind == _TEXT else variable.dtype == kind
    if not right:
        mend = f": {_MEND}" if variable.dtype.kind in "fO" else ""
        problems.append(f"{name!r} has dtype {variable.dtype}; expected {kind}{mend}")
    return problems


def _variable_problems(ds: xr.Dataset) -> list[str]:
    problems = []
    for name, variable in ds.variables.items():
        dims = variable.dims
        out_of_order = {names.EPISODE, names.TIME} <= set(dims) and dims[:2] != (names.EPISODE, names.TIME)
        if out_of_order and name != names.MASK:
            problems.append(f"{name!r} has dims ({', '.join(map(str, dims))}); {_reorder(str(name), variable)}")
        problems += _dtype_attr_problems(str(name), variable)
    return problems


def _reorder(name: str, variable: xr.Variable) -> str:
    """Say what to do about a variable over episode and time in another order."""
    if name.startswith(names.FINAL_PREFIX) or is_episode_field(variable):
        return f"a `where` over time has spread it; call that on fields alone, or after ds.drop_vars({name!r})"
    return "expected (episode, time, ...): ds.transpose('episode', 'time', ...)"


def _dtype_attr_problems(name: str, variable: xr.Variable) -> list[str]:
    """Return what is wrong with `padding` and `recorded_dtype`; a variable a user added has neither."""
    given = {key: variable.attrs.get(key) for key in (names.PADDING_ATTR, names.RECORDED_DTYPE_ATTR)}
    if all(value is None for value in given.values()):
        return []
    problems = []
    for key, value in given.items():
        if not isinstance(value, str):
            problems.append(f"{name!r} has attrs[{key!r}]={value!r}; expected text")
    if problems:
        return problems
    padding, recorded = given.values()
    shown = shown_as(recorded)
    if shown is None:
        return [f"{name!r} has attrs['recorded_dtype']={recorded!r}, which is no dtype"]
    if padding_text(shown) != padding:
        return [f"{name!r} has attrs['padding']={padding!r}; expected {padding_text(shown)!r} for {recorded}"]
    return []


def _value_problems(ds: xr.Dataset) -> list[str]:
    """Return what is wrong with the values of the coordinates over `episode`."""
    problems = []
    numbers = ds.variables[names.EPISODE].values
    length, complete, seen = (ds.variables[name].values for name in (names.LENGTH, names.COMPLETE, names.START_SEEN))
    reason = ds.variables[names.END_REASON].values
    if (length < 0).any():
        problems.append(f"'length' is negative in {_some(numbers[length < 0])}")
    unknown = ~np.logical_or.reduce([reason == known for known in names.END_REASONS])
    if unknown.any():
        problems.append(
            f"'end_reason' is {str(reason[unknown][0])!r} in {_some(numbers[unknown])}; "
            f"expected {', '.join(map(repr, names.END_REASONS))}"
        )
    wrong = complete != (seen & (reason != names.CUT))
    if wrong.any():
        problems.append(
            f"'complete' does not say whether the start was seen and the environment ended the episode, "
            f"in {_some(numbers[wrong])}"
        )
    return problems


def _some(numbers: np.ndarray) -> str:
    """Name the first few of some episodes."""
    shown = ", ".join(map(str, numbers[:5]))
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"episode{'s' if len(numbers) > 1 else ''} {shown}{more}"
