"""What is beyond floats is said: finite values whose sums or squares are not."""

import numpy as np
import pytest

import trajlab as tl

CALLS = {
    "state_trace": lambda ds: tl.state_trace(ds, "x")["std"],
    "state_trace mean": lambda ds: tl.state_trace(ds, "reward", quantiles=False)["mean"],
    "autocorrelation": lambda ds: tl.autocorrelation(ds, "x")["autocorrelation"],
    "returns": lambda ds: tl.returns(ds),
    "return_to_go": lambda ds: tl.return_to_go(ds),
    "action_by_state": lambda ds: tl.action_by_state(ds, "step", "x")["std"],
    "action_saturation": lambda ds: tl.action_saturation(ds, "reward", executed="x")["mean_difference"],
}


def recording(scale):
    x = np.random.default_rng(0).normal(size=5)
    reward = np.linspace(0.9, 1.1, 5)
    return tl.from_episodes(
        [{"x": sign * x * scale, "reward": reward * scale, "step": np.arange(5)} for sign in (1, -1)]
    )


@pytest.mark.parametrize("call", CALLS)
def test_values_too_large_to_be_added_up_are_reported(call):
    function = call.split()[0]
    with pytest.warns(UserWarning, match=rf"^{function}: .*too large for their sums and squares to be floats") as seen:
        result = CALLS[call](recording(1.6e308))
    assert not np.isfinite(result).all()
    assert [one.filename for one in seen] == [__file__]
    assert np.isfinite(CALLS[call](recording(1e100))).any()


def test_infinite_rewards_are_a_users_own():
    ds = tl.from_episodes([{"reward": np.array([1.0, np.inf])}])
    assert tl.returns(ds).item() == np.inf
    assert np.isinf(tl.return_to_go(ds).values).all()
