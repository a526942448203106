"""One recording at work: what each call changes, under the lock, beneath the Recorder's public face."""

import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from trajlab.block.interrupts import uninterrupted
from trajlab.block.layout import GAP, RESET
from trajlab.block.read import is_spread
from trajlab.capture.convention import Convention
from trajlab.capture.envs import env_columns
from trajlab.capture.plan import Plan
from trajlab.capture.select import Fields
from trajlab.capture.sources import Sources, are_leaves, find_sources, plain_mask
from trajlab.recorder.adding import Adding
from trajlab.recorder.attached import Inlet, RowSource
from trajlab.recorder.calls import as_array, as_iteration, step_mask
from trajlab.recorder.delivery import Delivery
from trajlab.recorder.marks import Mark
from trajlab.recorder.session import Session
from trajlab.recorder.state import Call, Counters, Options
from trajlab.recorder.summary import Summary, summarise


class Recording:
    """The state of a recorder; `Recorder` says what its calls mean.

    Every change is made under the lock, and `_counters` is replaced last: what a call has written counts only then.
    """

    def __init__(
        self,
        fields: Fields,
        convention: Convention,
        envs: Any,
        num_envs: int | None,
        options: Options,
        delivery: Delivery,
        *,
        enabled: bool,
    ) -> None:
        """Start with nothing."""
        self._fields, self._convention, self._envs, self._num_envs = fields, convention, envs, num_envs
        self._options, self._delivery = options, delivery
        self._enabled, self._closed = enabled, False
        self._lock = threading.RLock()
        self._session: Session | None = None
        self._counters = Counters()
        self._adding = Adding(convention)
        self._source: RowSource | None = None

    def _take(self, chunk: Any, extra: dict[str, Any], *, mask: Any, iteration: Any, envs: Any, is_step: bool) -> Any:
        """Check a chunk, write it, and only then count it; return its signature."""
        with self._lock:
            self._check_open()
            mask, envs = as_array(mask), as_array(envs)
            is_mask = getattr(envs, "dtype", None) == np.dtype(bool)
            is_partial = envs is not None and not is_mask
            sources = find_sources(
                chunk,
                extra,
                self._convention,
                self._fields,
                num_envs=self._num_envs,
                is_step=is_step,
                is_partial=is_partial,
            )
            mask = plain_mask(mask, self._convention, self._num_envs)
            session = self._session or self._new_session(sources, is_step, is_partial)
            plan = session.plan
            if self._session is None:
                self._check_marks(plan.layout.num_envs)
            part = chosen = None
            if is_mask:
                mask = step_mask(envs, plan)
            elif envs is not None:
                part = chosen = env_columns(envs, plan.layout.num_envs, "envs")
            leaves = session.fit.leaves_of(sources, "step" if is_step else "chunk")
            if is_mask and isinstance(envs, np.ndarray) and not any(map(is_spread, leaves)):
                chosen = np.flatnonzero(envs)
            length, signature = session.fit.check(
                leaves, mask, is_step=is_step, part=None if part is None else len(part)
            )
            call = Call(length, signature, is_step, mask, chosen, is_whole=part is None)
            self._store(session, leaves, call, iteration)
            return signature

    def _store(self, session: Session, leaves: list[Any], call: Call, given: Any) -> None:
        """Write the checked arrays of a chunk, and only then count them; `given` is its iteration, if one was."""
        counters, length = self._counters, call.length
        updates = 1 if call.is_step else session.plan.updates(leaves)
        iteration = self._iteration(given, call.is_step)
        last = counters.iteration
        jumps = last is not None and not 0 <= iteration - last <= 1
        self._session = session
        after, captured = counters, None
        if not session.is_full(counters):
            call = call._replace(updates=updates, iteration=iteration, jumps=jumps)
            after, captured = session.append(counters, leaves, call)
            length = after.rows - counters.rows
        self._counters = after._replace(
            seen=counters.seen + length,
            updates=counters.updates if call.is_step else iteration + updates,
            iteration=iteration + updates - 1,
            marks=(),
        )
        if captured is not None and captured.time.size:
            self._delivery.add("on_batch", session.batch(captured, counters.rows, iteration, call.envs))
        self._add_finished()

    def _check_marks(self, num_envs: int) -> None:
        """Check marks that were given before the number of environments was known; forget one that does not fit."""
        for mark in self._counters.marks:
            try:
                mark.check(num_envs)
            except (TypeError, ValueError):
                others = tuple(other for other in self._counters.marks if other is not mark)
                self._counters = self._counters._replace(marks=others)
                raise

    def _new_session(self, sources: Sources, is_step: bool, is_partial: bool) -> Session:
        plan = Plan(
            sources,
            self._convention,
            self._fields,
            envs=self._envs,
            num_envs=self._num_envs,
            is_step=is_step,
            is_partial=is_partial,
        )
        options = self._options
        if self._source is not None:
            own = {name: at for name, at in self._source.episode_fields.items() if name in plan.chosen}
            options = options._replace(episode_fields={**own, **(options.episode_fields or {})})
        return Session(plan, options, self._lock)

    def _iteration(self, given: Any, is_step: bool) -> int:
        if given is None:
            return (self._counters.iteration or 0) if is_step else self._counters.updates
        return as_iteration(given)

    def _mark(self, mark: Mark) -> None:
        if not self._enabled:
            return
        with self._lock:
            self._check_open()
            if not self._adding.is_empty and self._session is None:
                self._finish_step()
            mark = mark.of(self._session.plan.layout.num_envs if self._session else self._num_envs)
            self._finish_step(mark.envs)
            self._counters = self._counters._replace(marks=(*self._counters.marks, mark))

    def _add(self, field: Any, value: Any, envs: Any, iteration: Any) -> None:
        """Do what `Recorder.add` says."""
        self._check_open()
        adding = self._adding
        if iteration is not None:
            iteration = as_iteration(iteration)
        if envs is not None or not adding.put(field, value, iteration, self._rooms):
            num_envs = self._session.plan.layout.num_envs if self._session else self._num_envs
            adding.add(field, value, envs, num_envs=num_envs, iteration=iteration, write=self._take_step)
        if adding.is_complete:
            self._take_whole(*adding.taken())

    def _rooms(self) -> Mapping[str, np.ndarray]:
        return self._session.rooms(self._counters) if self._session else {}

    def _take_whole(self, step: Mapping[str, Any], iteration: int | None, signature: Any) -> None:
        """Record a step of all environments, with all fields, just like the one that gave the signature."""
        if signature is None or self._session is None:
            self._take_step(step, None, iteration)
            return
        leaves = self._session.fit.leaves_by_name(step)
        self._session.fit.check_there(leaves)
        self._store(self._session, leaves, Call(1, signature, is_step=True), iteration)

    def _take_step(self, step: Any, envs: Any, iteration: int | None) -> Any:
        """Record a step that has been gathered; return its signature where its arrays are recorded as they come."""
        signature = self._take(step, {}, mask=None, iteration=iteration, envs=envs, is_step=True)
        return signature if are_leaves(self._convention, self._fields) else None

    def _finish_step(self, envs: np.ndarray | None = None) -> None:
        """Record what is gathered of some environments, or of all."""
        if not self._adding.is_empty:
            with self._lock:
                self._adding.write_out(envs, self._take_step)

    def _add_finished(self, *, is_last: bool = False) -> None:
        """Let the episodes that have finished wait for the consumers."""
        if self._session is None:
            return
        if is_last:
            self._counters = self._session.closed(self._counters)
        episodes = self._session.finished(self._counters, is_last=is_last)
        if episodes is not None:
            self._delivery.add("on_episodes", episodes)

    def _pull_and_hand_out(self) -> None:
        """Record the rows that wait in the source, and give the consumers what has come."""
        self._pull()
        self._delivery.hand_out(wait=False)

    def _pull(self) -> None:
        """Record the rows that wait in the source, if there is one."""
        if self._source is None:
            return
        with self._lock, uninterrupted():
            rows = self._source.waiting()
            if rows is None:
                return
            for bit in (RESET, GAP):
                marked = np.flatnonzero(rows.marks == bit)
                if marked.size:
                    self._mark(Mark(bit, marked))
            self._take(rows.chunk, {}, mask=rows.mask, iteration=rows.iteration, envs=None, is_step=rows.is_step)
            self._source.taken()

    def _attach(self, source: RowSource) -> Inlet:
        """Do what `attach` says."""
        with self._lock:
            self._check_open()
            self._check_unattached()
            if not (self._session is None and self._adding.is_empty):
                raise ValueError("this Recorder has recorded already; give a new one, and join the two with concat()")
            if dataclasses.replace(self._convention, base=None) != Convention():
                raise ValueError(
                    "this Recorder was made with convention=; leave it out, as the rows come from an environment "
                    "that says itself what they mean"
                )
            if self._enabled:
                self._source, self._convention = source, source.convention
                self._options = self._options._replace(attrs=source.attrs, mends=source.mends)
            else:
                source.stop()
            return Inlet(self._lock, self._pull_and_hand_out)

    def _check_unattached(self) -> None:
        if self._source is not None:
            raise ValueError("this Recorder is filled by an environment; use another one for more")

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this Recorder is closed; make a new one to record more")

    def _summary(self) -> Summary:
        with self._lock:
            waiting = self._source.num_waiting if self._source else 0
            return summarise(self._session, self._counters, enabled=self._enabled, closed=self._closed, waiting=waiting)


def attach(recorder: Recording, source: RowSource) -> Inlet:
    """Let a recorder take all its rows from a source from now on; return what whoever gathers them needs.

    Raises
    ------
    ValueError
        When the recorder has rows already, has a source, is closed, or was given a convention of its own.
    """
    return recorder._attach(source)
