"""Write episodes until killed: each argument `WAY:SECONDS:PATH` is a process of its own, which is given so long from its first file on.

They are forked from one that has imported everything, and has not yet used JAX.
"""

import itertools
import os
import signal
import sys
import time

import gymnasium as gym
import numpy as np

import trajlab as tl
from trajlab.integrations.gymnasium import RecordTrajectory


class Counting(gym.Env):
    """Shows (number of the episode, step in it), and ends after as many steps as the number's last digit, and one."""

    observation_space = gym.spaces.Box(0, 1e9, (2,), np.float64)
    action_space = gym.spaces.Discrete(10)
    episode, steps = -1, 0

    def reset(self, *, seed=None, options=None):
        self.episode, self.steps = self.episode + 1, 0
        return np.array([self.episode, 0.0]), {}

    def step(self, action):
        self.steps += 1
        is_over = self.steps > self.episode % 10
        return np.array([self.episode, self.steps], float), 0.5, is_over, False, {"text": "é" * 50}


def wrapped(path):
    """Write step by step."""
    env = RecordTrajectory(Counting(), path)
    while True:
        env.reset()
        is_over = False
        while not is_over:
            *_, is_over, _, _ = env.step(3)


def consumed(path):
    """Write episodes as a Recorder finds them."""
    env = gym.wrappers.Autoreset(Counting())
    rec = tl.Recorder(retain=False, consumers=[tl.JsonlWriter(path)], convention=tl.Convention(autoreset="next_step"))
    obs, _ = env.reset()
    for _ in itertools.count():
        after, reward, terminated, _, _ = env.step(3)
        rec.record_step({"obs": obs[None], "reward": np.array([reward]), "terminated": np.array([terminated])})
        obs = after


WAYS = {"wrapped": wrapped, "consumed": consumed}


def main():
    for argument in sys.argv[1:]:
        way, seconds, path = argument.split(":", 2)
        child = os.fork()
        if not child:
            WAYS[way](path)
        while not (os.path.isdir(path) and os.listdir(path)):
            time.sleep(0.001)
        time.sleep(float(seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
