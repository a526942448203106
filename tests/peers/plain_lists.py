"""Episodes as plain lists, one environment at a time: what a recording has to equal."""

import numpy as np

import trajlab as tl

NAMES = ("obs", "action", "reward", "terminated", "truncated")


class PlainLists:
    """What each environment did, step by step, in lists of NumPy arrays."""

    def __init__(self, num_envs):
        self.episodes, self.open, self.rows = [], [None] * num_envs, 0

    def step(self, *values):
        """Write down a step: tensors of what stood before it, of what was done and what followed, and what stood after it."""
        *values, after = [np.array(value.numpy()) for value in values]
        for env in range(len(self.open)):
            if self.open[env] is None:
                self.open[env] = {name: [] for name in NAMES} | {"env": env, "row": self.rows, "after": None}
                self.episodes.append(self.open[env])
            for name, value in zip(NAMES, values, strict=True):
                self.open[env][name].append(value[env])
            if values[3][env] or values[4][env]:
                self.open[env]["after"] = after[env]
                self.open[env] = None
        self.rows += 1

    def cut(self, envs):
        for env in envs:
            self.open[env] = None

    def compare(self, ds, *, has_final):
        """Compare a Dataset with the lists; return the number of episodes."""
        tl.validate(ds, deep=True)
        expected = sorted(self.episodes, key=lambda episode: (episode["row"], episode["env"]))
        assert ds["env"].values.tolist() == [episode["env"] for episode in expected]
        assert ds["start_row"].values.tolist() == [episode["row"] for episode in expected]
        for number, episode in enumerate(expected):
            found = tl.episode(ds, number)
            for name in NAMES:
                np.testing.assert_array_equal(found[name].values, np.stack(episode[name]).reshape(found[name].shape))
            known = has_final and episode["after"] is not None
            assert bool(ds["final_known"][number]) == known
            if known:
                np.testing.assert_array_equal(ds["final_obs"][number].values, episode["after"])
        return len(expected)


def reasons(ds):
    """Return how often episodes ended for each reason, as text."""
    counts = np.unique(ds["end_reason"].values, return_counts=True)
    return ", ".join(f"{number} {reason}" for reason, number in zip(*counts, strict=True))
