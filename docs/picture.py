"""Draw the README's picture: `python docs/picture.py` writes docs/_static/quickstart.png."""

from pathlib import Path

import jax
import matplotlib as mpl

mpl.use("Agg")

import trajlab as tl
from trajlab.testing import ppo


def main() -> None:
    """Train as the quickstart does, record, and draw."""
    config = ppo.Config()
    agent = ppo.make("CartPole-v1", config)
    train_state = agent.init(jax.random.key(0))
    rec = tl.Recorder(
        ["obs"],
        dims={"obs": ["component"]},
        coords={"component": ["position", "velocity", "angle", "angular velocity"]},
        units={"obs": ["m", "m/s", "rad", "rad/s"]},
    )
    for _ in range(config.num_iterations):
        train_state, chunk, _ = agent.collect(train_state)
        rec.record(chunk)
        train_state = agent.update(train_state, chunk)
    ds = rec.to_dataset()
    axes = tl.plot_state_trace(ds.sel(component=["position", "angle"]), "obs", by="start_iteration", groups=3)
    target = Path(__file__).parent / "_static" / "quickstart.png"
    axes[0].figure.savefig(target, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
