"""Which fields are recorded, from what kinds of chunk, in which dtypes, and under which names."""

import dataclasses
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import chex
import flax.struct
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import trajlab as tl

T, N = 4, 2
DONE = np.zeros((T, N), bool)


def array(*inner, dtype=np.float32, start=0):
    """Return an array (T, N, ...) in which all values differ."""
    shape = (T, N, *inner)
    return (np.arange(np.prod(shape)).reshape(shape) + start).astype(dtype)


def chunk():
    return {
        "obs": array(3),
        "action": array(dtype=np.int32),
        "reward": array(),
        "done": DONE,
        "info": {"height": array(), "speed": array(2), "deep": {"height": array(start=50)}},
    }


def names_of(ds):
    """Return the recorded fields."""
    return sorted(str(name) for name in ds.data_vars if name != "iteration")


def fields_recorded(fields, **extra):
    return names_of(tl.from_rollout(chunk(), fields=fields, **extra))


# Choosing fields ---------------------------------------------------------------------------------------------

ALL = ["action", "done", "info.deep.height", "info.height", "info.speed", "obs", "reward"]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        (None, ALL),
        (["*"], ALL),
        (["obs", "action"], ["action", "done", "obs"]),
        (("reward",), ["done", "reward"]),
        ([], ["done"]),
        (["info"], ["done", "info.deep.height", "info.height", "info.speed"]),
        (["info.deep"], ["done", "info.deep.height"]),
        (["*height"], ["done", "info.deep.height", "info.height"]),
        (["info.[hs]*"], ["done", "info.height", "info.speed"]),
        (["o?s"], ["done", "obs"]),
        (["*", "-info.*"], ["action", "done", "obs", "reward"]),
        (["*", "-info"], ["action", "done", "obs", "reward"]),
        (["-info.deep"], ["action", "done", "info.height", "info.speed", "obs", "reward"]),
        (["*", "-info.*", "info.speed"], ["action", "done", "info.speed", "obs", "reward"]),
        (["*", "-nothing.*"], ALL),
        (["*", "-done"], ALL),
        ({"obs": "obs"}, ["done", "obs"]),
        ({"position": "obs", "r": "reward", "end": "done"}, ["end", "position", "r"]),
        ({"extra": "info"}, ["done", "extra.deep.height", "extra.height", "extra.speed"]),
    ],
    ids=str,
)
def test_names_and_globs(fields, want):
    assert fields_recorded(fields) == want


def test_the_order_is_the_chunks_with_the_flags_behind():
    ds = tl.from_rollout(chunk(), fields=["reward", "action"])
    assert [name for name in ds.data_vars if name != "iteration"] == ["action", "reward", "done"]


def test_renamed_fields_hold_the_same_values_and_keep_their_roles():
    ds = tl.from_rollout(chunk(), fields={"position": "obs", "move": "action", "gain": "reward"})
    plain = tl.from_rollout(chunk())
    for new, old in (("position", "obs"), ("move", "action"), ("gain", "reward")):
        np.testing.assert_array_equal(ds[new], plain[old])
    assert [ds[name].attrs["role"] for name in ("position", "move", "gain")] == ["observation", "action", "reward"]


def test_functions_of_the_chunk():
    fields = {
        "twice": lambda c: c["reward"] * 2,
        "split": lambda c: {"x": c["obs"][..., 0], "rest": {"y": c["obs"][..., 1:]}},
        "on_device": lambda c: jnp.asarray(c["obs"]).sum(-1),
        "obs": "obs",
    }
    ds = tl.from_rollout(chunk(), fields=fields)
    assert names_of(ds) == ["done", "obs", "on_device", "split.rest.y", "split.x", "twice"]
    np.testing.assert_array_equal(ds["twice"][0], chunk()["reward"][:, 0] * 2)
    np.testing.assert_array_equal(ds["split.rest.y"][1], chunk()["obs"][:, 1, 1:])
    np.testing.assert_array_equal(ds["on_device"], ds["obs"].sum("obs_dim_0"))


def test_slots_given_as_functions_are_fields_too():
    convention = tl.Convention(
        observation=lambda c: c["obs"][..., :2],
        reward=lambda c: c["reward"] - 1,
        done=lambda c: c["action"] > 5,
        next_observation=lambda c: c["obs"][..., :2] + 100,
    )
    rollout = chunk()
    ds = tl.from_rollout(rollout, convention=convention)
    roles = {ds[name].attrs["role"]: name for name in names_of(ds) if "role" in ds[name].attrs}
    assert roles["observation"] == "obs_"
    assert ds["length"].values.tolist() == [4, 4]
    assert ds["end_reason"].values.tolist() == ["done", "done"]
    np.testing.assert_array_equal(ds[roles["reward"]][0], rollout["reward"][:, 0] - 1)
    np.testing.assert_array_equal(ds["final_obs_"].sel(episode=0), rollout["obs"][-1, 0, :2] + 100)


def test_a_function_that_raises_says_where_it_stands():
    recorder = tl.Recorder({"bad": lambda c: c["nothing"]})
    with pytest.raises(KeyError, match="nothing") as caught:
        recorder.record(chunk())
    assert caught.value.__notes__ == ["raised by the function given as fields['bad']"]


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ("obs", TypeError, r"fields='obs'; expected a list of names, \['obs'\]"),
        ([1], TypeError, r"fields=\[1\]; expected names and globs"),
        ({"a": 1}, TypeError, r"fields\['a'\]=1; expected a dotted path or a function"),
        ({1: "obs"}, TypeError, r"fields\[1\]='obs'"),
    ],
)
def test_other_forms_are_refused_at_once(fields, error, match):
    with pytest.raises(error, match=match):
        tl.Recorder(fields)


@pytest.mark.parametrize("fields", [["acton"], ["*", "-acton"], {"a": "acton"}, ["obs", "acton*"]])
def test_misspelt_names_get_a_suggestion(fields):
    with pytest.raises(KeyError, match=r"no field 'acton\*?'\. Did you mean 'action'\? There are: "):
        tl.Recorder(fields).record(chunk())


# Extras ------------------------------------------------------------------------------------------------------


def test_extras_become_fields():
    extra = {"state": {"position": array(2), "body": {"mass": array()}}, "advantage": array(start=9)}
    ds = tl.from_rollout(chunk(), **extra)
    assert set(names_of(ds)) == {*ALL, "state.position", "state.body.mass", "advantage"}
    np.testing.assert_array_equal(ds["advantage"][0], extra["advantage"][:, 0])


def test_extras_take_part_in_choosing_fields():
    assert fields_recorded(["obs", "state.*"], state={"x": array()}) == ["done", "obs", "state.x"]
    assert fields_recorded({"x": "state.x"}, state={"x": array()}) == ["done", "x"]


def test_a_flag_may_be_an_extra():
    plain = chunk()
    del plain["done"]
    ds = tl.from_rollout(plain, done=array(dtype=np.int32) == 5)
    assert ds["length"].values.tolist() == [4, 3, 1]


def test_an_extra_that_is_in_the_chunk_is_refused():
    with pytest.raises(ValueError, match="'reward': given by keyword and in the chunk; rename one"):
        tl.from_rollout(chunk(), reward=array())


# Kinds of chunks ---------------------------------------------------------------------------------------------


class Inner(NamedTuple):
    position: Any
    image: Any


class Tupled(NamedTuple):
    obs: Any
    action: Any
    done: Any


@flax.struct.dataclass
class FlaxInner:
    position: Any
    image: Any


@dataclasses.dataclass
class Plain:
    obs: Any
    action: Any
    done: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    obs: Any
    action: Any
    done: Any


@flax.struct.dataclass
class Flax:
    obs: Any
    action: Any
    done: Any
    static: str = flax.struct.field(pytree_node=False, default="anything")


@chex.dataclass
class Chex:
    obs: Any
    action: Any
    done: Any


@chex.dataclass(frozen=True, mappable_dataclass=False)
class ChexPlain:
    obs: Any
    action: Any
    done: Any


KINDS = [dict, Tupled, Plain, Frozen, Flax, Chex, ChexPlain]
INNERS = {
    "dict": lambda **parts: parts,
    "tuple": Inner,
    "plain": lambda **parts: dataclasses.make_dataclass("Obs", list(parts))(**parts),
    "flax": FlaxInner,
}


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kinds_of_chunks(kind, inner, convert):
    parts = {"position": array(2), "image": array(2, 2, dtype=np.uint8)}
    obs = INNERS[inner](**{name: convert(part) for name, part in parts.items()})
    recorder = tl.Recorder()
    for _ in range(2):
        recorder.record(kind(obs=obs, action=convert(array(dtype=np.int32)), done=convert(DONE)))
    ds = recorder.to_dataset()
    assert names_of(ds) == ["action", "done", "obs.image", "obs.position"]
    for name, want in {"obs.position": parts["position"], "obs.image": parts["image"]}.items():
        assert ds[name].dtype == want.dtype
        np.testing.assert_array_equal(ds[name].values[1], np.concatenate([want, want])[:, 1])


def test_lists_and_numbered_keys():
    ds = tl.from_rollout({"obs": [array(), array(2)], "sensor": {0: array(), 1: array()}, "done": DONE})
    assert names_of(ds) == ["done", "obs.0", "obs.1", "sensor.0", "sensor.1"]


def test_none_is_absent():
    assert names_of(tl.from_rollout(chunk() | {"mask_": None, "info": {"a": None}})) == [
        "action",
        "done",
        "obs",
        "reward",
    ]


def test_chunks_of_one_recording_may_be_of_several_kinds():
    recorder = tl.Recorder()
    recorder.record({"obs": array(), "action": array(dtype=np.int32), "done": DONE})
    recorder.record(Tupled(obs=array(), action=array(dtype=np.int32), done=DONE))
    recorder.record(Flax(obs=array(), action=array(dtype=np.int32), done=DONE))
    assert recorder.to_dataset()["length"].values.tolist() == [3 * T] * N


# Dtypes ------------------------------------------------------------------------------------------------------

NUMPY_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 <U5 S4".split()
)
NUMPY_DTYPES += ["datetime64[s]", "timedelta64[ms]", ">f8", ">i4"]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_dtypes_are_kept(dtype):
    values = array(dtype=np.int64).astype(dtype)
    if np.dtype(dtype).kind in "iuf" and np.dtype(dtype).itemsize == 8:
        values = (array(dtype=np.int64) + 2**53 // 3).astype(dtype)
    ds = tl.from_rollout({"x": values, "done": DONE})
    native = np.dtype(dtype).newbyteorder("=")
    assert ds["x"].dtype == native
    assert ds["x"].attrs["recorded_dtype"] == native.name
    np.testing.assert_array_equal(ds["x"].values, values.T)


@pytest.mark.parametrize("dtype", "bool int8 int16 int32 uint8 uint16 uint32 float16 float32 complex64".split())
def test_jax_dtypes_are_kept(dtype):
    values = array(2, dtype=np.int64).astype(dtype)
    ds = tl.from_rollout({"x": jnp.asarray(values), "done": jnp.asarray(DONE)})
    assert ds["x"].dtype == np.dtype(dtype)
    np.testing.assert_array_equal(ds["x"].values, values.transpose(1, 0, 2))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_small_floats_appear_as_float32(dtype, convert):
    values = array().astype(dtype)
    ds = tl.from_rollout({"x": convert(values), "done": DONE})
    assert (ds["x"].dtype, ds["x"].attrs["recorded_dtype"]) == (np.float32, np.dtype(dtype).name)
    np.testing.assert_array_equal(ds["x"].values, values.astype(np.float32).T)


@pytest.mark.parametrize("dtype", [jnp.int4, jnp.uint4], ids=lambda dtype: dtype.__name__)
def test_small_integers_appear_in_eight_bits(dtype):
    values = (array() % 7).astype(dtype)
    ds = tl.from_rollout({"x": jnp.asarray(values), "done": DONE})
    assert ds["x"].dtype == np.dtype(dtype.__name__.replace("4", "8"))
    np.testing.assert_array_equal(ds["x"].values, values.astype(np.int32).T)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_appear_as_their_data(impl):
    keys = jax.random.split(jax.random.key(0, impl=impl), (T, N))
    ds = tl.from_rollout({"key": keys, "done": DONE})
    assert (ds["key"].dtype, ds["key"].attrs["recorded_dtype"]) == (np.uint32, "key")
    np.testing.assert_array_equal(ds["key"].values, np.asarray(jax.random.key_data(keys)).swapaxes(0, 1))


def test_flags_of_numbers_count_where_not_zero():
    for dtype in (np.int32, np.float32, np.uint8, ml_dtypes.bfloat16):
        done = (array(dtype=np.int32) == 5).astype(dtype) * np.asarray(3, dtype)
        ds = tl.from_rollout({"done": done, "x": array()})
        assert ds["length"].values.tolist() == [4, 3, 1]
        assert ds["done"].dtype == (np.float32 if dtype == ml_dtypes.bfloat16 else dtype)


def test_fields_without_elements():
    ds = tl.from_rollout({"nothing": array(0), "obs": array(), "done": DONE})
    assert ds["nothing"].shape == (N, T, 0)
    assert ds.load()["nothing"].values.size == 0


def test_later_strings_may_be_shorter():
    recorder = tl.Recorder()
    for text, kind in (("abcde", "<U5"), ("xy", "<U2")):
        recorder.record({"name": np.full((T, N), text, kind), "tag": np.full((T, N), text.encode()), "done": DONE})
    ds = recorder.to_dataset()
    assert ds["name"].values[0].tolist() == ["abcde"] * T + ["xy"] * T
    assert ds["tag"].values[0].tolist() == [b"abcde"] * T + [b"xy"] * T


# Names -------------------------------------------------------------------------------------------------------

RESERVED = "episode time length mask env start_row start_iteration end_reason complete start_seen final_known iteration".split()


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_get_an_underscore(name):
    with pytest.warns(UserWarning, match=f"the field '{name}' has a reserved name and is recorded as '{name}_'"):
        ds = tl.from_rollout({name: array(), "done": DONE})
    np.testing.assert_array_equal(ds[f"{name}_"].values, array().T)


def test_the_warning_comes_once_and_from_the_users_line():
    recorder = tl.Recorder()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recorder.record({"time": array(), "done": DONE})
        recorder.record({"time": array(), "done": DONE})
    assert [warning.category for warning in caught] == [UserWarning]
    assert not caught[0].filename.startswith(str(Path(tl.__file__).parent))


def test_a_reserved_name_that_is_taken_with_its_underscore_is_refused():
    with (
        pytest.raises(ValueError, match="two fields would be called 'time_': 'time' and 'time_'; rename one"),
        pytest.warns(),
    ):
        tl.from_rollout({"time": array(), "time_": array(), "done": DONE})


def test_a_slash_counts_as_a_dot():
    ds = tl.from_rollout({"info/speed": array(), "obs": {"a/b": array()}, "done": DONE})
    assert names_of(ds) == ["done", "info.speed", "obs.a.b"]


@pytest.mark.parametrize("twice", [{"a.b": array(), "a": {"b": array()}}, {"a/b": array(), "a": {"b": array()}}])
def test_equal_dotted_names_are_refused(twice):
    with pytest.raises(ValueError, match=r"two fields of the chunk have the same dotted name: 'a\.b'"):
        tl.from_rollout(twice | {"done": DONE})


def test_a_field_may_be_called_as_a_final_observation():
    rollout = {"obs": array(2), "next_obs": array(2, start=7), "final_obs": array(2), "done": DONE}
    ds = tl.from_rollout(rollout, convention=tl.Convention(final_observation=None))
    np.testing.assert_array_equal(ds["final_obs"].values, array(2).swapaxes(0, 1))
    np.testing.assert_array_equal(ds["final_obs_"].values, rollout["next_obs"][-1])


@pytest.mark.parametrize(
    "leaf", [1.0, "text", None.__class__, object(), SimpleNamespace(x=1)], ids=lambda leaf: type(leaf).__name__
)
def test_leaves_that_are_no_arrays_are_refused(leaf):
    with pytest.raises(TypeError, match=r"field 'info.odd' is of type \w+ .*; expected a JAX or NumPy array"):
        tl.from_rollout({"info": {"odd": leaf}, "done": DONE})
