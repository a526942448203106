"""Axes that were flattened into one: they are taken apart, or it is said what is missing to do so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import trajlab as tl

U, N, T = 3, 4, 5


def make_chunk(axes="UNT", seed=0):
    """Return a chunk whose arrays have three axes in this order."""
    rng = np.random.default_rng(seed)
    chunk = {
        "obs": rng.normal(size=(U, N, T, 2)).astype(np.float32),
        "reward": rng.normal(size=(U, N, T)).astype(np.float32),
        "done": rng.random((U, N, T)) < 0.2,
    }
    order = ["UNT".index(letter) for letter in axes]
    return {name: x.transpose(*order, *range(3, x.ndim)) for name, x in chunk.items()}


def flattened(chunk, first):
    """Return arrays whose axes `first` and the one behind it are one."""
    return {name: x.reshape(*x.shape[:first], -1, *x.shape[first + 2 :]) for name, x in chunk.items()}


def record(chunks, axes, convention=None, **options):
    recorder = tl.Recorder(convention=convention or tl.Convention(axes=axes), **options)
    for chunk in chunks:
        recorder.record(chunk)
    return recorder.to_dataset()


FLAT = {"(UN)T": ("UNT", 0), "(NU)T": ("NUT", 0), "T(UN)": ("TUN", 1), "T(NU)": ("TNU", 1)}


@pytest.mark.parametrize("home", ["numpy", "jax"])
@pytest.mark.parametrize("axes", FLAT)
def test_updates_and_environments(axes, home):
    plain, first = FLAT[axes]
    chunks = [make_chunk(plain, seed) for seed in (0, 1)]
    flat = [flattened(chunk, first) for chunk in chunks]
    if home == "jax":
        flat = jax.tree.map(jnp.asarray, flat)
    ds = record(flat, axes, num_envs=N)
    want = record(chunks, plain)
    xr.testing.assert_identical(ds.drop_attrs(deep=False).load(), want.drop_attrs(deep=False).load())
    assert ds["iteration"].max() == 2 * U - 1
    assert f"axes={axes} (given)" in ds.attrs["convention"]


def test_updates_and_time():
    # Of U and T either could be told from the product alone; N stands by itself.
    with pytest.raises(ValueError, match=r"the size of U and of T cannot be told from their product; give Recorder"):
        record([flattened(make_chunk("UTN"), 0)], "(UT)N")


def test_from_rollout_takes_the_number_of_environments():
    ds = tl.from_rollout(flattened(make_chunk(), 0), convention=tl.Convention(axes="(UN)T"), num_envs=N)
    want = tl.from_rollout(make_chunk(), convention=tl.Convention(axes="UNT"))
    xr.testing.assert_identical(ds.drop_attrs(deep=False).load(), want.drop_attrs(deep=False).load())


def test_numbers_of_updates_may_differ():
    one, two = make_chunk(), {name: x[:1] for name, x in make_chunk(seed=1).items()}
    ds = record([flattened(one, 0), flattened(two, 0)], "(UN)T", num_envs=N)
    want = record([one, two], "UNT")
    xr.testing.assert_identical(ds.drop_attrs(deep=False).load(), want.drop_attrs(deep=False).load())


def test_a_mask_has_an_axis_for_each_letter():
    mask = np.random.default_rng(2).random((U, N, T)) < 0.8
    both = []
    for chunk, axes in ((flattened(make_chunk(), 0), "(UN)T"), (make_chunk(), "UNT")):
        recorder = tl.Recorder(convention=tl.Convention(axes=axes), num_envs=N, envs=[3, 0])
        recorder.record(chunk, mask=mask)
        both.append(recorder.to_dataset().drop_attrs(deep=False).load())
    xr.testing.assert_identical(*both)


@pytest.mark.parametrize("home", [np.asarray, jnp.asarray])
def test_a_mask_may_be_flattened_as_the_arrays_are(home):
    mask = np.random.default_rng(2).random((U, N, T)) < 0.8
    both = []
    for form in (mask, mask.reshape(U * N, T)):
        recorder = tl.Recorder(convention=tl.Convention(axes="(UN)T"), num_envs=N)
        recorder.record(flattened(make_chunk(), 0), mask=home(form))
        both.append(recorder.to_dataset().drop_attrs(deep=False).load())
    xr.testing.assert_identical(*both)


def test_a_chunk_of_two_axes_under_a_convention_of_more():
    chunk = {"obs": np.zeros((T, N)), "done": np.zeros((T, N), bool), "truncated": np.zeros((T, N), bool)}
    with pytest.raises(ValueError, match=r"For arrays \(T, N\) amend the convention: Convention\(..., axes='TN'\)"):
        tl.from_rollout(chunk, convention="stoix")
    assert tl.from_rollout(chunk, convention=tl.Convention("stoix", axes="TN")).sizes["episode"] == N


def test_steps_have_no_updates():
    recorder = tl.Recorder(convention=tl.Convention(axes="(UN)T"), num_envs=N)
    for t in range(3):
        recorder.record_step({"obs": np.full(N, t), "done": np.zeros(N, bool)})
    recorder.record_step({"obs": np.full(2, 3), "done": np.ones(2, bool)}, envs=[0, 2])
    ds = recorder.to_dataset()
    assert ds["length"].values.tolist() == [4, 3, 4, 3]
    assert ds["obs"].values[0].tolist() == [0, 1, 2, 3]


def test_what_is_not_recorded_may_have_any_shape():
    chunk = flattened(make_chunk(), 0) | {"loss": np.zeros(7), "step": np.zeros(())}
    ds = record([chunk], "(UN)T", num_envs=N, fields=["*", "-loss", "-step"])
    assert ds.sizes["episode"] == record([make_chunk()], "UNT").sizes["episode"]
    with pytest.raises(ValueError, match="'loss'"):
        record([chunk], "(UN)T", num_envs=N)


def test_a_buffer_takes_axes_one_by_one():
    chunk = jax.tree.map(jnp.asarray, flattened(make_chunk("TNU"), 1))
    with pytest.raises(ValueError, match="the size of S and of N cannot be told from their product; unflatten it"):
        tl.init_buffer(chunk, 20, convention=tl.Convention(axes="T(SN)"))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("T(N)", r"axes='T\(N\)'; expected at least two letters between parentheses, as in '\(UN\)T'"),
        ("T(AN", r"axes='T\(AN'; expected at least two letters between parentheses"),
        ("TAN)", r"axes='TAN\)'; expected distinct capital letters with T and N among them"),
        ("(UU)TN", "expected distinct capital letters"),
        ("(UT)", "expected distinct capital letters with T and N among them"),
        ("(un)t", "expected distinct capital letters"),
        ("()TN", "expected at least two letters between parentheses"),
        ("T((UN))", "expected distinct capital letters"),
        ("", "expected distinct capital letters"),
        (3, "axes=3; expected distinct capital letters"),
    ],
    ids=str,
)
def test_letters_are_checked(axes, message):
    with pytest.raises(ValueError, match=message):
        tl.Convention(axes=axes)


def test_sizes_that_cannot_be_told():
    flat = flattened(make_chunk(), 0)
    with pytest.raises(
        ValueError, match=r"axes='\(UN\)T': the size of U and of N cannot be told .* Recorder\(num_envs="
    ):
        record([flat], "(UN)T")
    with pytest.raises(ValueError, match="the size of S and of U cannot be told from their product; unflatten it"):
        record([flat], "(SU)TN", num_envs=N)


def test_sizes_that_do_not_divide():
    flat = flattened(make_chunk(), 0)
    with pytest.raises(
        ValueError, match=r"the flag 'done' has shape \(12, 5\); expected .*'\(UN\)T'.* a multiple of the environments"
    ):
        record([flat], "(UN)T", num_envs=5)
    recorder = tl.Recorder(convention=tl.Convention(axes="(UN)T"), num_envs=N)
    recorder.record(flat)
    with pytest.raises(ValueError, match=r"the flag 'done' has shape \(11, 5\)"):
        recorder.record({name: x[:11] for name, x in flat.items()})
    assert recorder.num_recorded_steps == U * T
