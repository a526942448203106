"""Break the package on purpose, one line at a time, and require that a test notices.

    python tests/mutations.py                  all mutations, two at a time; some minutes
    python tests/mutations.py lock padding     those with one of these words in their name
    python tests/mutations.py --list           only say what they are

Each mutation replaces text of the package's source in a copy of it and runs the tests named beside it against
that copy (PYTHONPATH leads to it). The exit status is not zero where one survives, where a text to replace is
not in the source exactly once (then the list here must follow the source), or where the tests fail without a
mutation.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    """One deliberate fault: what is wrong with it, the edits (file, old text, new text), and who should notice."""

    name: str
    why: str
    edits: tuple[tuple[str, str, str], ...]
    tests: str


def edit(file: str, old: str, new: str) -> tuple[tuple[str, str, str], ...]:
    return ((file, old, new),)


OWNERSHIP = "tests/recorder/test_ownership.py"
INTERRUPT = "tests/recorder/test_interrupt.py"
FETCH = "tests/recorder/test_fetch.py"
SHARING = "tests/recorder/test_sharing.py"
LOG = "tests/block/test_log.py"
SEGMENT = "tests/segment/test_segmenter.py"
LIFECYCLE = "tests/recorder/test_lifecycle.py"
CONVENTIONS = "tests/recorder/test_conventions.py"
NAMED = "tests/conventions/test_named.py"
SLOTS = "tests/conventions/test_slots.py"
INSIDE_JIT = "tests/buffer/test_inside_jit.py"
BUFFER = "tests/buffer/test_against_reference.py"
ALIVE = "tests/agents/test_alive.py"
STATISTICS = "tests/agents/test_statistics.py"
PAIRS = "tests/analysis/test_action_transitions.py"
NGRAMS = "tests/analysis/test_action_ngrams.py"
RUNS = "tests/analysis/test_action_runs.py"
ENTROPY = "tests/analysis/test_action_entropy.py"
RASTER = "tests/plot/test_plot_action_raster.py"
EPISODE_FIELDS = "tests/recorder/test_episode_fields.py"
AXES = "tests/recorder/test_axes.py"
MILESTONES = "tests/analysis/test_milestones.py"
EVENTS = "tests/analysis/test_event_times.py"
ALIGNMENT = "tests/analysis/alignment/test_alignment.py"
WINDOWS = "tests/analysis/test_align.py"

MUTATIONS = [
    Mutation(
        "start off by one",
        "an episode begins one row after the end before it plus one",
        edit("segment/cutting.py", "np.append(0, end_key[:-1] + step)", "np.append(0, end_key[:-1] + step + 1)"),
        SEGMENT,
    ),
    Mutation(
        "end off by one",
        "the ending transition is left out",
        edit("segment/cutting.py", "length = np.concatenate([end_key + 1, ", "length = np.concatenate([end_key, "),
        SEGMENT,
    ),
    Mutation(
        "mask dropped",
        "masked cells count as transitions",
        edit("block/append.py", "return byte if mask is None else xp.where(mask, byte, NOT_RECORDED)", "return byte"),
        f"{LOG} -k flags_by_hand",
    ),
    Mutation(
        "mask dropped on a partial step",
        "environments that made no step have one",
        edit("recorder/sharing.py", "flags[np.arange(len(flags))[:, None] >= count] = NOT_RECORDED", "pass"),
        f"{SHARING} -k one_environment_at_a_time or next_step_only",
    ),
    Mutation(
        "flags swapped",
        "terminated and truncated change places",
        edit("block/layout.py", '{"terminated": TERMINATED, "truncated": TRUNCATED', '{"terminated": TRUNCATED, "truncated": TERMINATED'),
        f"{OWNERSHIP} -k rollout",
    ),
    Mutation(
        "clamped write",
        "a chunk that does not fit goes into the open block, where JAX clamps it onto earlier rows",
        (
            ("block/log.py", "if rows + length <= last.start + last.capacity:", "if rows < last.start + last.capacity:"),
            ("block/log.py", "assert 0 <= row <= block.capacity - length", "row = min(row, block.capacity - length)"),
        ),
        f"{LOG} -k edge",
    ),
    Mutation(
        "lock dropped on read",
        "a thread that reads meets arrays that another has donated",
        edit("block/view.py", "with self.lock:\n            first = int", "if True:\n            first = int"),
        f"{OWNERSHIP} -k another_thread",
    ),
    Mutation(
        "lock dropped on write",
        "two threads record at once",
        edit("recorder/recording.py", '"""Check a chunk, write it, and only then count it; return its signature."""\n        with self._lock:', '"""Check a chunk, write it, and only then count it; return its signature."""\n        if True:'),
        f"{OWNERSHIP} -k two_threads",
    ),
    Mutation(
        "a shared row that a Dataset has read",
        "steps go on in rows that a Dataset has read already",
        edit("recorder/recorder.py", "            self._counters = self._session.closed(self._counters)\n            return self._session.dataset", "            return self._session.dataset"),
        f"{SHARING} -k ends_the_sharing",
    ),
    Mutation(
        "marks of steps in shared rows lost",
        "a mark that found no cell in the shared rows is forgotten with them",
        edit("recorder/session.py", "bits=window.waiting(counters.rows)", "bits=None"),
        f"{SHARING} -k wait_for_the_next_row",
    ),
    Mutation(
        "a value of an environment's next step taken for this one's",
        "a field that comes again does not complete the step",
        edit("recorder/adding.py", "            self.write_out(common(again, envs), write)\n", "            pass\n"),
        "tests/recorder/test_adding.py -k second_value",
    ),
    Mutation(
        "a step written over the one before",
        "values of the next step go where those of the last one went",
        edit("recorder/adding.py", "rooms = rooms if whole else find_rooms()", "rooms = self.rooms = getattr(self, 'rooms', None) or find_rooms()"),
        "tests/recorder/test_adding.py -k values_are_owned",
    ),
    Mutation(
        "an added array taken for one like the last",
        "an array unlike that of the step before is not looked at",
        edit("recorder/values.py", "type(value) is own and kind_of(value) == kind and", "type(value) is own and"),
        "tests/recorder/test_adding.py -k refused_adds",
    ),
    Mutation(
        "a consumer of two recorders",
        "one consumer gets the rows of two recorders as those of one",
        edit("recorder/delivery.py", "if any(other.has(consumer) for other in list(_OPEN.values())):", "if False:"),
        "tests/recorder/test_consumers.py -k one_open_recorder",
    ),
    Mutation(
        "marks ignored",
        "resets by hand and gaps are forgotten",
        edit("recorder/session.py", "marks = None if marks is None else marks[self.envs]", "marks = None"),
        f"{LIFECYCLE} -k keep_their_numbers",
    ),
    Mutation(
        "marks of the wrong environments",
        "marks are taken by column, not by the environment's number",
        edit("recorder/session.py", "else marks[self.envs]", "else marks[: len(self.envs)]"),
        f"{LIFECYCLE} -k keep_their_numbers",
    ),
    Mutation(
        "a gap taken for a reset",
        "after a gap the start counts as seen",
        edit("segment/cutting.py", '"is_reset": (mark_bits[last] & RESET) != 0', '"is_reset": mark_bits[last] != 0'),
        SEGMENT,
    ),
    Mutation(
        "moved field not moved",
        "a field recorded after the step is read on its own row",
        edit("dataset/source.py", "time - int(self.field.moved)", "time"),
        CONVENTIONS,
    ),
    Mutation(
        "final observation from the wrong row",
        "the true last observation is read one row early",
        edit("dataset/build.py", "origin[ended], offset[ended] = stored.index(final.final), last[ended]", "origin[ended], offset[ended] = stored.index(final.final), last[ended] - 1"),
        CONVENTIONS,
    ),
    Mutation(
        "final observation of the next step from the wrong row",
        "the true next observation is read on the first row",
        edit("dataset/build.py", "origin[:], offset[:] = stored.index(final.following), last", "origin[:], offset[:] = stored.index(final.following), 0"),
        f"{FETCH} -k final_observations",
    ),
    Mutation(
        "padding zero",
        "what is no transition reads as action 0",
        edit("padding.py", "return dtype.type(np.iinfo(dtype).min)", "return dtype.type(0)"),
        CONVENTIONS,
    ),
    Mutation(
        "reset row counted",
        "with next_step the row after an end is a transition",
        edit("segment/cutting.py", 'step = 2 if rules.autoreset == "next_step" else 1', "step = 1"),
        SEGMENT,
    ),
    Mutation(
        "parity of reset rows",
        "with next_step a flag on a reset row ends an episode",
        edit("segment/cutting.py", "return position % 2 == 0", "return np.ones(len(key), bool)"),
        SEGMENT,
    ),
    Mutation(
        "rows after the end kept",
        "with disabled auto-reset, what stands after an end is an episode",
        edit("segment/cutting.py", 'if rules.autoreset == "disabled":\n        tail_start', "if False:\n        tail_start"),
        SEGMENT,
    ),
    Mutation(
        "NumPy input not copied",
        "JAX reads the caller's buffer after the call has returned",
        edit("recorder/session.py", "return np.array(x) if isinstance(x, np.ndarray) else x", "return x"),
        f"{OWNERSHIP} -k has_to_wait",
    ),
    Mutation(
        "open block not copied",
        "what was read changes as recording goes on",
        edit("block/read.py", "view.copy() if copy else view", "view"),
        f"{LOG} -k open_block",
    ),
    Mutation(
        "views can be written",
        "who reads a sealed block may change the recording",
        edit("block/read.py", "view.flags.writeable = False", "pass"),
        f"{LOG} -k no_read_can_be_written",
    ),
    Mutation(
        "blocks of Datasets reused",
        "reset hands out memory that a Dataset reads",
        edit("block/log.py", "if id(block) not in in_use", "if True"),
        f"{OWNERSHIP} -k reset",
    ),
    Mutation(
        "equal views are one",
        "of two equal Datasets only the first is protected from reset",
        edit("block/view.py", "@dataclasses.dataclass(frozen=True, eq=False)\nclass LogView", "@dataclasses.dataclass(frozen=True)\nclass LogView"),
        f"{OWNERSHIP} -k equal_datasets",
    ),
    Mutation(
        "allocations not reused",
        "reset allocates anew",
        edit("block/log.py", "self._spare += [block for block", "self._spare = [] and [block for block"),
        f"{OWNERSHIP} -k reuses",
    ),
    Mutation(
        "iteration off",
        "the first row of an update belongs to the one before",
        edit("dataset/source.py", 'np.searchsorted(self.iteration_rows, rows, side="right") - 1', 'np.searchsorted(self.iteration_rows, rows, side="left") - 1'),
        f"{LIFECYCLE} -k iterations_are",
    ),
    Mutation(
        "env numbers lost",
        "recorded environments are counted from 0",
        edit("dataset/build.py", "envs[episodes.column]", "episodes.column"),
        f"{LIFECYCLE} -k keep_their_numbers",
    ),
    Mutation(
        "previous_row ignored",
        "flags belong to the row they stand on",
        edit("segment/cutting.py", "    if previous_row:\n", "    if False:\n"),
        SEGMENT,
    ),
    Mutation(
        "masked rows joined at the wrong row",
        "ranks of a later span lead to rows of an earlier one",
        edit("segment/ranks.py", "= cells_b + (b.start - a.start)", "= cells_b"),
        SEGMENT,
    ),
    Mutation(
        "updates behind time",
        "stacked updates are interleaved",
        edit("block/layout.py", 'for letter in "UT" if letter in axes]\n    others', 'for letter in "TU" if letter in axes]\n    others'),
        f"{LOG} -k leading_axes",
    ),
    Mutation(
        "the first to finish",
        "max_episodes is reached when any of the wanted episodes has ended",
        edit("recorder/session.py", "bool(table.settled.all())", "bool(table.settled.any())"),
        f"{LIFECYCLE} -k max_episodes",
    ),
    Mutation(
        "looked at too late",
        "the recorder waits for twice as many ends as can settle the wanted episodes",
        edit("recorder/watch.py", "return 2 * num_ends >= self.ends", "return num_ends >= self.ends"),
        f"{LIFECYCLE} -k is_full_says",
    ),
    Mutation(
        "out of range clamped",
        "an index past the end reads the last cell",
        edit("dataset/lazy.py", "raise IndexError(", "return np.clip(array, 0, size - 1)\n        raise IndexError("),
        f"{FETCH} -k out_of_range",
    ),
    Mutation(
        "padded gather not cut",
        "a gather on the device returns its padding",
        edit("block/read.py", "tuple(axes)))[:count]", "tuple(axes)))"),
        f"{FETCH} -k one_episode",
    ),
    Mutation(
        "everything fetched",
        "a read fetches the whole block and picks from it on the host",
        edit("block/read.py", "to_host(gather_host(host_view(array), rows, columns, inner))", "gather_host(to_host(array), rows, columns, inner)"),
        f"{FETCH} -k one_episode",
    ),
    Mutation(
        "block lost by an interrupt",
        "between the donated call and the store an interrupt loses the block",
        edit("block/block.py", "self.box.extend(map(function, (self.box[-1][0],), (row,), (device,)))", "self.box.append(function(self.box[-1][0], row, device))"),
        f"{INTERRUPT} -k warm-jax",
    ),
    Mutation(
        "interrupt not held back",
        "in a cold call JAX runs Python code after the donated call",
        edit("block/interrupts.py", "signal.signal(signal.SIGINT, lambda *args: held.append(args))", "pass"),
        f"{INTERRUPT} -k where_jax_compiles",
    ),
    Mutation(
        "interrupt swallowed",
        "Ctrl-C is held back and forgotten",
        edit("block/interrupts.py", "signal.raise_signal(signal.SIGINT)", "pass"),
        f"{INTERRUPT} -k where_jax_compiles",
    ),
    Mutation(
        "cold calls taken for warm ones",
        "a chunk that lies elsewhere compiles anew and is not guarded",
        edit("capture/fit.py", "return array.aval, array.sharding, array.committed", "return array.shape, array.dtype, type(array)"),
        f"{INTERRUPT} -k where_jax_compiles",
    ),
    Mutation(
        "a moved block taken for a warm one",
        "the block follows the chunk to another place, and the next call compiles anew",
        edit("block/log.py", "block.capacity, block.place(), ", "block.capacity, "),
        f"{INTERRUPT} -k where_jax_compiles",
    ),
    Mutation(
        "counted before it is written",
        "an interrupted chunk counts although its rows were not written",
        edit("recorder/recording.py", "            after, captured = session.append(", "            self._counters = counters._replace(rows=counters.rows + length)\n            after, captured = session.append("),
        f"{INTERRUPT} -k warm-numpy",
    ),
    Mutation(
        "flags of a lost chunk kept",
        "the episodes are counted by the flags of a chunk that was interrupted",
        edit("recorder/stream.py", "while self._waiting and self._waiting[-1][0] >= row:", "while False:"),
        f"{INTERRUPT} -k flags_of_a_lost_chunk",
    ),
    Mutation(
        "a refused chunk leaves its marks out",
        "marks are used up by a chunk that is refused",
        edit("recorder/recording.py", "            leaves = session.fit.leaves_of(", "            self._counters = self._counters._replace(marks=())\n            leaves = session.fit.leaves_of("),
        f"{INTERRUPT} -k refused",
    ),
    Mutation(
        "dtypes not checked",
        "another dtype is cast without a word",
        edit("capture/shapes.py", "    if got == stored:\n        return True\n", "    return True\n"),
        "tests/recorder/test_errors.py -k mid_run",
    ),
    Mutation(
        "record waits",
        "record() waits for the chunk",
        edit("recorder/session.py", "marks = bits_of(counters.marks, self.plan.layout.num_envs, jumps=call.jumps)\n", "marks = bits_of(counters.marks, self.plan.layout.num_envs, jumps=call.jumps)\n        [x.block_until_ready() for x in leaves if hasattr(x, 'block_until_ready')]\n"),
        "tests/recorder/test_async.py -k returns_at_once",
    ),
    Mutation(
        "every row compiles",
        "the row is a constant of the compiled function",
        edit("block/append.py", "return jax.jit(append, donate_argnums=0)", "return lambda arrays, row, chunk: jax.jit(lambda a, c: append(a, row, c), donate_argnums=0)(arrays, chunk)"),
        "tests/recorder/test_async.py -k nothing_compiles",
    ),
    Mutation(
        "a buffer when full writes over its end",
        "what comes when a buffer is full replaces the last kept chunk",
        edit("buffer/appending.py", "jnp.minimum(number, spec.chunks)", "jnp.minimum(number, spec.chunks - 1)"),
        f"{BUFFER} -k first_rows",
    ),
    Mutation(
        "a buffer forgets what was before",
        "how the kept rows of a ring begin is not looked up",
        edit("buffer/reading.py", "lead_in(states, rules)", "lead_in(np.zeros_like(states), rules)"),
        f"{INSIDE_JIT} -k first_kept_row",
    ),
    Mutation(
        "a flag one row late forgotten",
        "a state behind a cell does not wait for the flag that stands on the next one",
        edit("cell_states.py", "            state = after_end\n        has_end = False", "            state = after_end"),
        "tests/buffer/test_lead_in.py",
    ),
    Mutation(
        "a lost head taken for a start",
        "an episode whose head was overwritten has its start seen",
        edit("segment/table.py", "start_seen=table.start_seen & (lost == 0)", "start_seen=table.start_seen"),
        f"{BUFFER} -k last_rows",
    ),
    Mutation(
        "a moved field read from an overwritten row",
        "the first kept row counts although what it needs from the row before is gone",
        edit("segment/table.py", "given_up + (drops_first & (given_up > 0))", "given_up"),
        f"{BUFFER} -k last_rows",
    ),
    Mutation(
        "numbers of a ring begin anew",
        "episodes are counted from the first kept one",
        edit("segment/table.py", "number = started + np.cumsum", "number = np.cumsum"),
        f"{INSIDE_JIT} -k ring_is_the_tail",
    ),
    Mutation(
        "a ring out of order",
        "rows are read as they lie, not the oldest first",
        edit("buffer/reading.py", "first = evicted % spec.capacity", "first = 0"),
        f"{INSIDE_JIT} -k ring_is_the_tail",
    ),
    Mutation(
        "a buffer's arrays lent, not owned",
        "the Dataset shows the buffer's own arrays, which may be deleted",
        edit("buffer/reading.py", "return jnp.array(ordered.reshape(_rows_shape(array, rows, leads)), copy=True)", "return array if ordered.shape == array.shape else ordered.reshape(_rows_shape(array, rows, leads))"),
        f"{INSIDE_JIT} -k not_readable_by_the_host",
    ),
    Mutation(
        "every buffer compiles",
        "two buffers made alike are not equal",
        edit("buffer/spec.py", "    plan: Plan = dataclasses.field(compare=False)", "    plan: Plan"),
        f"{INSIDE_JIT} -k nothing_is_traced",
    ),
    Mutation(
        "named: brax's next observation",
        "the cached first state is taken for the final observation",
        edit("capture/named.py", '"truncated", None),\n    "next_observation": None,', '"truncated", None),'),
        f"{NAMED} -k brax",
    ),
    Mutation(
        "named: purejaxrl's recurrent flags",
        "an episode ends one row late",
        edit("capture/named.py", 'DONE_ONLY | {"flags": "previous_row"}', "DONE_ONLY"),
        f"{NAMED} -k purejaxrl",
    ),
    Mutation(
        "named: replaced next observations",
        "what the auto-reset put there is taken for the final observation",
        edit("capture/named.py", '"done": "done",\n    "next_observation": None,', '"done": "done",'),
        f"{NAMED} -k craftax",
    ),
    Mutation(
        "named: jumanji's discount",
        "terminated and truncated change places",
        edit("capture/named.py", 'read(chunk, "discount") == 0, last', 'read(chunk, "discount") != 0, last'),
        f"{NAMED} -k jumanji",
    ),
    Mutation(
        "named: navix's reset row",
        "the reset counts as a transition",
        edit("capture/named.py", '"alignment": "result",\n        "autoreset": "next_step",', '"alignment": "result",'),
        f"{NAMED} -k navix",
    ),
    Mutation(
        "named: pgx's players",
        "a game is over for all when it is for one",
        edit("capture/named.py", "(*like.shape, -1).all(-1)", "(*like.shape, -1).any(-1)"),
        f"{NAMED} -k player",
    ),
    Mutation(
        "named: stoix's axes",
        "devices and batches change places",
        edit("capture/named.py", '"axes": "DUBTN"', '"axes": "BUDTN"'),
        f"{NAMED} -k stoix",
    ),
    Mutation(
        "named: a row over what the user says",
        "an amended slot is not",
        edit("capture/convention.py", 'if getattr(self, slot) == "auto":', "if True:"),
        f"{SLOTS} -k amend",
    ),
    Mutation(
        "named: functions before paths",
        "a function counts although a path before it is found",
        edit("capture/sources.py", "elif source is None or under(source, names):", "elif source is None:"),
        f"{SLOTS} -k called_where",
    ),
    Mutation(
        "agents: dead one step early",
        "an agent takes no part in the transition that ends it",
        edit("dataset/alive.py", "time[cell] + (0 if self.agents.is_late else 1)", "time[cell]"),
        f"{ALIVE} -k every_form",
    ),
    Mutation(
        "agents: dead from the episode before",
        "flags of the row before count on an episode's first row",
        edit("dataset/alive.py", "            done[is_first] = False", "            done[is_first] |= False"),
        f"{ALIVE} -k row_before",
    ),
    Mutation(
        "agents: a start that was not seen",
        "where it was not, agents that are done already count on the first row",
        edit("dataset/alive.py", "self.source.episodes.start_seen[episode] | done[is_first].all(axis=1)", "True"),
        f"{ALIVE} -k ring_the_row_before",
    ),
    Mutation(
        "agents: each for all",
        "an episode ends where all agents are done, whatever the flag for all says",
        edit("capture/agents.py", "        if whole in names:", "        if whole in names and slot not in each:"),
        f"{ALIVE} -k what_holds_for_all",
    ),
    Mutation(
        "agents: terminated before the last is truncated",
        "an agent that terminated earlier keeps the episode from being truncated",
        edit("capture/agents.py", "for name in (path, *also)), axis)", "for name in (path,)), axis)"),
        f"{ALIVE} -k terminated_and_truncated",
    ),
    Mutation(
        "agents: axis not moved",
        "with several environments, cells of agents and environments change places",
        edit("capture/arrange.py", "return x if self.moved is None else xp.moveaxis(x, self.moved, len(self.shape) - 1)", "return x"),
        f"{ALIVE} -k every_form",
    ),
    Mutation(
        "agents: NumPy lent to JAX",
        "arrays of some agents are read after record() has returned",
        edit("capture/arrange.py", "np.array(leaf) if isinstance(leaf := leaves[place], np.ndarray) else leaf", "leaves[place]"),
        f"{ALIVE} -k filled_anew",
    ),
    Mutation(
        "agents: dead in a histogram",
        "actions of agents that are done are counted",
        edit("analysis/action_histogram.py", "groups.index(batch), either(missing, dead))", "groups.index(batch), missing)"),
        f"{STATISTICS} -k test_histograms",
    ),
    Mutation(
        "agents: dead between the bins",
        "bins span what agents that are done have in their rows",
        edit("analysis/action_histogram.py", "found.add(rows if dead is None else rows[~dead])", "found.add(rows)"),
        f"{STATISTICS} -k over_the_range",
    ),
    Mutation(
        "agents: dead in a trace",
        "a trace is over agents that are done, too",
        edit("dataset/alive_rows.py", "np.flatnonzero(alive)", "np.arange(alive.size)"),
        f"{STATISTICS} -k test_traces",
    ),
    Mutation(
        "agents: dead in a return",
        "rewards of an agent that is done are added up",
        edit("analysis/returns.py", "rows if dead is None else np.where(dead, rows.dtype.type(0), rows)", "rows"),
        f"{STATISTICS} -k test_returns",
    ),
    Mutation(
        "agents: dead in a group",
        "what an agent that is done has in its rows makes groups",
        edit("analysis/grouping/by_values.py", "either(missing, alive.missing(batch, batch.values[by].shape))", "missing"),
        f"{STATISTICS} -k actions_of_one_agent",
    ),
    Mutation(
        "agents: dead in a stack",
        "stacked fields show what agents that are done have in their rows",
        edit("dataset/stack.py", "if source.alive.needed and self.takes_part is not None:", "if False:"),
        f"{STATISTICS} -k stacked",
    ),
    Mutation(
        "agents: one for another",
        "a field of one agent counts while the first one takes part",
        edit("dataset/alive_rows.py", "return alive[:, [self.agent]]", "return alive[:, [0]]"),
        f"{STATISTICS} -k that_differ",
    ),
    Mutation(
        "agents: spread over all",
        "a field of one agent that was spread over all counts for each of them",
        edit("dataset/alive_rows.py", "return alive & (np.arange(self.num_agents) == self.agent)", "return alive"),
        f"{STATISTICS} -k spread",
    ),
    Mutation(
        "agents: dead in a single line",
        "the line of an episode goes on where the agent is done",
        edit("plot/_single_episodes.py", "rows if dead is None else np.where(dead, np.nan, rows)", "rows"),
        "tests/agents/test_plots.py -k single_episodes",
    ),
    Mutation(
        "flattened axes in the wrong order",
        "axes that were flattened into one are taken apart the other way round",
        edit("capture/axes.py", "out += [sizes.get(letter, size // known) for letter in group]", "out += [sizes.get(letter, size // known) for letter in group[::-1]]"),
        f"{AXES} -k updates_and_environments",
    ),
    Mutation(
        "episode field from the other end",
        "the first value stands for an episode where the last should",
        edit("dataset/source.py", 'if self.at == "first" else', 'if self.at == "last" else'),
        f"{EPISODE_FIELDS} -k of_every_kind",
    ),
    Mutation(
        "episode field taken for a final observation",
        "a field with one value per episode is left out where final observations are",
        edit("dataset/fields.py", "return variable.attrs.get(names.ROLE_ATTR) == names.EPISODE_FIELD_ROLE", "return False"),
        f"{EPISODE_FIELDS} -k begins_with_final",
    ),
    Mutation(
        "episode field for an observation's final value",
        "a copy of the observation with one value per episode hides the final observation",
        edit("dataset/description.py", ' and field.name not in per_episode:', ':'),
        f"{EPISODE_FIELDS} -k under_two_names",
    ),
    Mutation(
        "pairs: over an edge",
        "the last action of an episode and the first of the next one are a pair",
        edit("analysis/kernels/pairs.py", "counts -= counted(last, last + ahead)", "pass"),
        f"{PAIRS} -k edge",
    ),
    Mutation(
        "pairs: over a gap",
        "actions are a pair where the steps between them were left out",
        edit("dataset/ordered.py", "if not gaps.any():", "if True:"),
        f"{PAIRS} -k neighbouring",
    ),
    Mutation(
        "pairs: between batches",
        "the last action of a batch and the first of the next one are none",
        edit("dataset/ordered.py", "shared = min(rows, batch.start)", "shared = 0"),
        f"{PAIRS} -k batches_end",
    ),
    Mutation(
        "pairs: between tiles of a log",
        "the last row of a tile and the first of the next one are none",
        edit("dataset/successive.py", "joined = _with_row(before, tile, width) if before is not None and adjoins else tile", "joined = tile"),
        "tests/dataset/test_successive.py -k rows_of_a_log",
    ),
    Mutation(
        "pairs: with a reset row",
        "a cell that is no transition follows the last action of an episode, and is followed by the first of the next",
        edit("dataset/successive.py", "- joined.start * width, joined.absent])", "- joined.start * width])"),
        "tests/dataset/test_successive.py -k rows_of_a_log",
    ),
    Mutation(
        "first times: columns of several episodes",
        "the first time of an episode that begins within a tile is sought in the one before, too",
        edit("analysis/events/first_hits.py", "    is_broken[inner % one.ahead] = True\n", ""),
        "tests/analysis/test_event_times.py -k fields_of_a_log",
    ),
    Mutation(
        "autocorrelation: over an edge",
        "a value and one of the next episode are a pair",
        edit("analysis/kernels/spacing.py", "stops = np.cumsum(lengths + gap)", "stops = np.cumsum(lengths)"),
        "tests/analysis/test_autocorrelation.py -k equals_a_loop",
    ),
    Mutation(
        "autocorrelation: one mean for all lags",
        "the mean of all values stands for that of the pairs of a lag",
        edit("analysis/kernels/lagged_sums.py", "out = (products - earlier * later / n)", "out = (products - earlier[:, :1] * later[:, :1] / n[:, :1] ** 2 * n)"),
        "tests/analysis/test_autocorrelation.py -k means_are_those",
    ),
    Mutation(
        "return to go: NaN of another episode",
        "an episode's last step takes on what comes after it",
        edit("analysis/return_to_go.py", "sum_backwards(self.rows, self._cells.offsets, discount)", "sum_backwards(self.rows, self._cells.offsets[[0, -1]], discount)"),
        "tests/analysis/test_return_to_go.py -k visible",
    ),
    Mutation(
        "agents: dead in a pair",
        "actions of agents that are done follow each other",
        edit("analysis/action_transitions.py", "either(missing, dead), one.ahead", "missing, one.ahead"),
        f"{STATISTICS} -k pairs_and_rates",
    ),
    Mutation(
        "agents: dead in a rate",
        "actions of agents that are done have a share",
        edit("analysis/step_counts.py", "steps), either(missing, dead))", "steps), missing)"),
        f"{STATISTICS} -k pairs_and_rates",
    ),
    Mutation(
        "milestones: cut counts as an end",
        "an episode that was cut never reaches an event",
        edit("analysis/events/first_times.py", "return self.by_episode(was_cut) &", "return self.by_episode(was_cut & False) &"),
        MILESTONES,
    ),
    Mutation(
        "milestones: an end is no end",
        "an episode that ended without an event might still reach it",
        edit("analysis/kernels/incidence.py", "1 - (found + ended) / among", "1 - found / among"),
        MILESTONES,
    ),
    Mutation(
        "events: an agent that is done",
        "a condition holds for agents that are done",
        edit("analysis/events/conditions.py", "rows if dead is None else rows & ~dead", "rows"),
        EVENTS,
    ),
    Mutation(
        "events: not the smallest",
        "of times in any order the first that comes stays",
        edit("analysis/kernels/minima.py", "        lower = np.flatnonzero(smallest.take(index) > values)", "        break"),
        EVENTS,
    ),
    Mutation(
        "alignment: the end of a cut episode",
        "cut episodes are aligned by a last transition that is not their end",
        edit("analysis/alignment/argument.py", "ds[END_REASON].values.astype(str) != CUT", 'ds[END_REASON].values != ""'),
        ALIGNMENT,
    ),
    Mutation(
        "alignment: overlaps weigh the same",
        "a transition counts whole in a part that it covers partly",
        edit("analysis/kernels/part_means.py", "covered / np.repeat(np.repeat(steps, parts), count)", "np.ones(len(covered))"),
        ALIGNMENT,
    ),
    Mutation(
        "windows: beyond the end",
        "padding behind an episode is taken for its steps",
        edit("dataset/windows.py", " & (step < self.cells.counts[self.episodes[window]])", ""),
        WINDOWS,
    ),
    Mutation(
        "n-grams: over an edge",
        "the last actions of an episode and the first of the next one are an n-gram",
        edit("analysis/coded_rows.py", "follows[last_places(batch, cells, len(codes))] = False", "pass"),
        f"{NGRAMS} -k edge",
    ),
    Mutation(
        "n-grams: between batches",
        "n-grams that lie in two batches are counted twice",
        edit("analysis/action_ngrams.py", "first = max(batch.shared - coder.n + 1, 0)", "first = 0"),
        f"{NGRAMS} -k batches_end",
    ),
    Mutation(
        "n-grams: halves",
        "of a long n-gram that is written as two halves the overlap is told twice",
        edit("analysis/kernels/ngrams.py", "last[:, 2 * self.half.n - self.n :]", "last"),
        f"{NGRAMS} -k any_length",
    ),
    Mutation(
        "n-grams: ties",
        "n-grams of equal count stand in any order",
        edit("analysis/action_ngrams.py", "enough[np.argsort(-counts[enough], kind=\"stable\")][:most]", "enough[np.argsort(counts[enough])][::-1][:most]"),
        f"{NGRAMS} -k top",
    ),
    Mutation(
        "n-grams: late values",
        "a value that the first batch had not is taken for its neighbour",
        edit("analysis/coded_rows.py", "if codes.min() < 0:", "if False:"),
        f"{NGRAMS} -k come_late",
    ),
    Mutation(
        "runs: truncated",
        "the last run of a truncated episode is taken for one that ended",
        edit("analysis/action_runs.py", "(TERMINATED, DONE))", "(TERMINATED, DONE, \"truncated\"))"),
        f"{RUNS} -k truncated",
    ),
    Mutation(
        "runs: between batches",
        "a run that goes on in the next batch begins anew there",
        edit("analysis/kernels/runs.py", "length[at_first] += self._kept.length - 1", "pass"),
        f"{RUNS} -k batches_end",
    ),
    Mutation(
        "runs: group",
        "the step in which a batch begins decides the group of a run from before",
        edit("analysis/kernels/runs.py", "of_first[at_first] = self._kept.group", "pass"),
        f"{RUNS} -k batches_end",
    ),
    Mutation(
        "runs: beside NaN",
        "a run beside a NaN is taken for one that ended",
        edit("analysis/action_runs.py", "beside[0, :, 1:] = nan[:, :-1] & follows[:, :-1]", "pass"),
        f"{RUNS} -k nan",
    ),
    Mutation(
        "entropy: window",
        "a window begins one step late",
        edit("analysis/action_entropy.py", "first = np.searchsorted(time, time - window // 2)", "first = np.searchsorted(time, time - window // 2 + 1)"),
        f"{ENTROPY} -k window",
    ),
    Mutation(
        "entropy: window of none",
        "a window tells of a step at which no episode is alive",
        edit("analysis/action_entropy.py", "return np.where(there, (until", "return np.where(True, (until"),
        f"{ENTROPY} -k fills_no_step",
    ),
    Mutation(
        "raster: thinned",
        "of many episodes the first ones are drawn, and not every so many-th",
        edit("plot/_pixels.py", "EPISODE: order[::rows]", "EPISODE: order[: -(-len(order) // rows)]"),
        f"{RASTER} -k pixels",
    ),
    Mutation(
        "raster: dead agents",
        "the actions of agents that are done are shown",
        edit("plot/_pixels.py", "left_out = either(nan, dead)", "left_out = nan"),
        f"{RASTER} -k agents",
    ),
]  # fmt: skip


def mutated_copy(folder: Path, mutation: Mutation | None) -> None:
    """Copy the package into `folder` and apply the edits; raise LookupError where a text is not there once."""
    shutil.copytree(ROOT / "trajlab", folder / "trajlab", ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in mutation.edits if mutation else ():
        path = folder / "trajlab" / file
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise LookupError(f"{mutation.name!r}: trajlab/{file} holds {text.count(old)} times, expected once:\n{old}")
        path.write_text(text.replace(old, new), encoding="utf-8")


def run_tests(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests against the copy; -P keeps the working directory, and so the real package, off the path."""
    words = tests.split(" -k ")
    chosen = [words[0], *(["-k", words[1]] if len(words) > 1 else [])]
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *chosen]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def try_one(mutation: Mutation) -> tuple[str, float, str]:
    """Return the outcome, the seconds it took, and what pytest said last."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        try:
            mutated_copy(Path(name), mutation)
        except LookupError as error:
            return "STALE", time.monotonic() - start, str(error)
        result = run_tests(Path(name), mutation.tests)
    outcome = {0: "SURVIVED", 1: "noticed"}.get(result.returncode, "ERROR")
    if (
        outcome == "noticed"
        and "error" in result.stdout.splitlines()[-1]
        and "failed" not in result.stdout.splitlines()[-1]
    ):
        outcome = "ERROR"  # the tests could not even be collected
    said = [line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return outcome, time.monotonic() - start, said[0] if said else result.stdout[-500:] + result.stderr[-500:]


def check_unmutated(mutations: list[Mutation]) -> bool:
    """Run all tests that are to notice something against an unchanged copy; they must pass, and use the copy."""
    with tempfile.TemporaryDirectory() as name:
        mutated_copy(Path(name), None)
        environment = os.environ | {"PYTHONPATH": name, "PYTHONDONTWRITEBYTECODE": "1"}
        code = "import trajlab; print(trajlab.__file__)"
        found = subprocess.run(
            [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        if not found.stdout.startswith(name):
            print(f"the copy is not what is imported, but {found.stdout}")
            return False
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(
                pool.map(lambda tests: (tests, run_tests(Path(name), tests)), dict.fromkeys(m.tests for m in mutations))
            )
    for tests, result in results:
        if result.returncode != 0:
            print(f"without a mutation, {tests} gives:\n{result.stdout[-2000:]}")
    return all(result.returncode == 0 for _, result in results)


def main() -> int:
    """Try the mutations and print a table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutations with one of these in their name")
    parser.add_argument("--list", action="store_true", help="only say what they are")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if not arguments.words or any(word in m.name for word in arguments.words)]
    if arguments.list:
        print("\n".join(f"{m.name}: {m.why} ({m.tests})" for m in chosen))
        return 0
    if not chosen:
        print("no mutation has such a name")
        return 1
    if not check_unmutated(chosen):
        return 1
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for mutation, (outcome, seconds, said) in zip(chosen, pool.map(try_one, chosen), strict=True):
            bad += outcome != "noticed"
            print(f"{outcome:<9} {seconds:5.0f} s  {mutation.name:<54} {said}", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} mutations noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
