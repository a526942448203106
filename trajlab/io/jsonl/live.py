"""Episodes written as they happen: each line when its step is known."""

import os
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from numpy import ndarray

from trajlab import names
from trajlab.io.jsonl.declared import OPTIONS, Declared
from trajlab.io.jsonl.describe import INFO, OBS, SEED, VALUES
from trajlab.io.jsonl.leaves import Tree, TypedLeaf
from trajlab.io.jsonl.lines import SEALED, sealed
from trajlab.io.jsonl.open_files import OpenFiles, write_all
from trajlab.io.jsonl.specs import FORMAT
from trajlab.io.jsonl.text import OPTIONS as NUMPY
from trajlab.io.jsonl.text import dumps, library
from trajlab.version import package_version

_REST = b',"terminated":%b,"truncated":%b,"info":%b,"iteration":%d'
_OF_NULL = ord("l")
"""A letter of null, which neither keys nor numbers have: a byte is found sooner than a word."""


class Trail:
    """The episode under way in one environment.

    Its file comes with the first step, so that there is none of a reset that failed, or that nothing followed.

    Attributes
    ----------
    is_begun : bool
        Whether it is known what the environment showed last.
    """

    def __init__(
        self,
        env: int,
        files: OpenFiles,
        declared: Declared,
        obs: TypedLeaf | Tree,
        action: TypedLeaf | Tree,
        reward: TypedLeaf,
        attrs: Mapping[str, Any],
    ) -> None:
        """Write the episodes of environment `env`."""
        self._env, self._files, self._declared, self._attrs = env, files, declared, attrs
        self._obs, self._action, self._reward = obs, action, reward
        self._head: dict[str, Any] = {}
        self._shown: Any = None
        self._number: int | None = None
        self._file: int | None = None
        self._t = self._version = 0
        self._line: dict[str, Any] = {"event": "step", "t": None, "action": None, "obs": None, "reward": None}
        self._rest, self._iteration = b"", -1
        self._dumps = library().dumps
        self.is_begun = False

    def begin(
        self, obs: Any, *, info: Mapping[str, Any], seed: int | None, options: Mapping[str, Any], start_seen: bool
    ) -> None:
        """Note what an environment showed before its first step, in memory of one's own; end what was before."""
        self.end()
        self._shown, self._t = obs, 0
        self._head = {INFO: self._declared.plain(info), SEED: seed, OPTIONS: self._declared.options(options)}
        self._head[names.START_SEEN] = start_seen
        self.is_begun = True

    def step(
        self, action: Any, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any, iteration: int, row: int
    ) -> None:
        """Write a step; `obs` is what it led to, None where that is not known.

        Raises
        ------
        ValueError
            When a value has another shape or kind than the variable.
        """
        line = self._line
        line["t"] = self._t = self._t + 1
        line["action"], line["obs"], line["reward"] = action, obs, reward
        text = b"null"
        leaf = self._obs
        if (  # `fits` would say it all, but a call takes as long as the rest of this
            ((type(obs) is ndarray and obs.dtype is leaf.dtype and obs.shape == leaf.shape) or leaf.fits(obs))
            and (type(action) is self._action.number or self._action.fits(action))
            and (type(reward) is self._reward.number or self._reward.fits(reward))
        ):
            try:
                text = self._dumps(line, None, NUMPY)
            except TypeError:  # an array that does not lie as orjson takes it
                text = b"null"
        if _OF_NULL in text and b"null" in text:  # also for a number that is not finite
            text = self._fitted(action, obs, reward)
        is_usual = iteration == self._iteration and not (terminated or truncated or info)
        rest = self._rest if is_usual else self._rest_of(terminated, truncated, info, iteration)
        if self._version != self._declared.version:
            rest += self._news()
        body = text[:-1] + rest
        whole = SEALED % (body, crc32(body))
        if self._file is None:
            self._append(whole, iteration, row)
        elif (written := os.write(self._file, whole)) < len(whole):  # as a disk that fills up does
            write_all(self._file, whole[written:])

    def _append(self, line: bytes, iteration: int, row: int) -> None:
        """Write a line to a new file, behind the first line of that, or to one that does not stay open."""
        if self._number is None:
            line = self._first_line(iteration, row) + line
        assert self._number is not None
        if self._file is None:
            self._files.append(self._number, line)
        else:
            write_all(self._file, line)

    def _fitted(self, action: Any, obs: Any, reward: Any) -> bytes:
        """Return the values of a step in the dtypes that files say, which become wider ones where they must."""
        shown = None if obs is None else self._obs.fitted(obs)
        values = {"action": self._action.fitted(action), "obs": shown, "reward": self._reward.fitted(reward)}
        return dumps(self._line | values)

    def _rest_of(self, terminated: Any, truncated: Any, info: Any, iteration: int) -> bytes:
        """Return the end of a line, which is kept where it is like that of most steps."""
        flags = (b"true" if flag else b"false" for flag in (terminated, truncated))
        rest = _REST % (*flags, dumps(self._declared.info(info)), iteration)
        if not (terminated or truncated or info):
            self._rest, self._iteration = rest, iteration
        return rest

    def _news(self) -> bytes:
        """Return what a file that is there does not say yet of the variables."""
        since, self._version = self._version, self._declared.version
        return b"" if self._number is None else b',"variables":%b' % dumps(self._declared.entries(since))

    def _first_line(self, iteration: int, row: int) -> bytes:
        """Return the first line of a new file."""
        shown = self._obs.fitted(self._shown)
        (self._number, self._file), self._version = self._files.begin(), self._declared.version
        line = {
            "event": "reset",
            names.EPISODE: self._number,
            OBS: shown,
            **{key: self._head[key] for key in (INFO, SEED, OPTIONS)},
            names.ENV: self._env,
            "schema": FORMAT,
            "version": package_version(),
            "attrs": self._attrs,
            "variables": self._declared.entries(),
            VALUES: {
                names.START_ROW: row,
                names.START_ITERATION: iteration,
                names.START_SEEN: self._head[names.START_SEEN],
            },
        }
        return sealed(dumps(line))

    def end(self) -> None:
        """End the episode, by its last flags or where it is."""
        if self._number is not None:
            self._files.end(self._number)
        self._number, self._file, self._shown, self.is_begun = None, None, None, False
