"""An environment whose every answer is known, and an account of its steps that is kept with plain lists."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

LIMIT = 6


class Counter(gym.Env):
    """Shows (number of the episode, step in it); ends by action 2, and is truncated at the sixth step."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space = Box(0, 1000, (2,), np.float64)
    action_space = Discrete(3)

    def __init__(self, number=0):
        self.episode, self.steps = 100 * number, 0

    def obs(self):
        return np.array([self.episode, self.steps], float)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return self.obs(), {"born": self.episode}

    def step(self, action):
        if action == -1:
            raise RuntimeError("broken")
        self.steps += 1
        terminated, truncated = bool(action == 2), self.steps == LIMIT
        info = {"step": self.steps} | ({"won": self.episode % 2 == 0} if terminated else {})
        return self.obs(), self.steps / 8, terminated, truncated, info


def counters(num, mode, kind=gym.vector.SyncVectorEnv, **kwargs):
    return kind([lambda i=i: Counter(i) for i in range(num)], autoreset_mode=mode, **kwargs)


class Account:
    """The episodes of each environment as lists of transitions, by what `reset` and `step` returned."""

    def __init__(self, num, mode):
        self.mode = mode
        self.obs, self.waits, self.seeds = [None] * num, [False] * num, [None] * num
        self.open = [[] for _ in range(num)]
        self.episodes = [[] for _ in range(num)]

    def _close(self, i, reason, final):
        if self.open[i]:
            self.episodes[i].append((self.open[i], reason, final))
        self.open[i] = []

    def reset(self, obs, where, seeds):
        for i in np.flatnonzero(where):
            if not self.waits[i]:
                self._close(i, "cut", self.obs[i])
            self.obs[i], self.waits[i], self.seeds[i] = obs[i].copy(), False, seeds[i]

    def step(self, actions, obs, reward, terminated, truncated, infos):
        for i in range(len(self.obs)):
            ended = terminated[i] or truncated[i]
            if self.waits[i]:
                if self.mode == "NextStep":
                    self.obs[i], self.waits[i], self.seeds[i] = obs[i].copy(), False, None
                continue
            final = infos["final_obs"][i] if ended and self.mode == "SameStep" else obs[i]
            info = infos["final_info"] if ended and self.mode == "SameStep" else infos
            won = info["won"][i] if ended and "won" in info and info["_won"][i] else None
            self.open[i].append((self.obs[i], actions[i], reward[i], self.seeds[i], info["step"][i], won))
            self.obs[i] = obs[i].copy()
            if ended:
                self._close(i, "terminated" if terminated[i] else "truncated", np.array(final))
                self.waits[i] = self.mode != "SameStep"
                if self.mode == "SameStep":
                    self.seeds[i] = None

    def finished(self):
        """All episodes so far, with those under way, by environment."""
        return [
            [*done, *([(rows, "cut", self.obs[i])] if rows else [])]
            for i, (done, rows) in enumerate(zip(self.episodes, self.open, strict=True))
        ]
