"""Fields recorded in few bits give what the same numbers in 32 bits give, however they are read from the log."""

import jax.numpy as jnp
import numpy as np
import pytest

import trajlab as tl

ANALYSES = {
    "action_histogram": lambda ds, field: tl.action_histogram(ds, field, bins=[0, 0.5, 1, 1.5, 2])["count"],
    "action_by_state": lambda ds, field: tl.action_by_state(ds, field, bins=[0, 1, 3])["count"],
    "action_saturation": lambda ds, field: tl.action_saturation(ds, field, low=0, high=1.5)["count"],
    "autocorrelation": lambda ds, field: tl.autocorrelation(ds, field, max_lag=3)["autocorrelation"],
    "occupancy": lambda ds, field: tl.occupancy(ds, field, "action", bins=([0, 1, 3], None))["count"],
    "return_to_go": lambda ds, field: tl.return_to_go(ds, reward=field, discount=0.9),
    "returns": lambda ds, field: tl.returns(ds, reward=field),
    "state_histogram": lambda ds, field: tl.state_histogram(ds, field, bins=[0, 0.5, 1, 1.5, 2], over="phase")["count"],
    "trace": lambda ds, field: tl.state_trace(ds, field)["quantiles"],
    "trace to the end": lambda ds, field: tl.state_trace(ds, field, align="end")["mean"],
    "trace by fraction": lambda ds, field: tl.state_trace(ds, field, align="fraction", parts=4)["mean"],
}


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.uint8, jnp.int8], ids=lambda dtype: dtype.__name__)
def test_as_in_32_bits(dtype):
    rng = np.random.default_rng(0)
    low = jnp.asarray(rng.integers(0, 4, (40, 3)) / 2, jnp.float32).astype(dtype)
    ds = tl.from_rollout(
        {
            "low": low,
            "wide": low.astype(jnp.float32),
            "action": jnp.asarray(rng.integers(0, 3, (40, 3)), jnp.int32),
            "done": jnp.asarray(rng.random((40, 3)) < 0.15),
        }
    )
    for name, analysis in ANALYSES.items():
        np.testing.assert_array_equal(analysis(ds, "low").values, analysis(ds, "wide").values, err_msg=name)
