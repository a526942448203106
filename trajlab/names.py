"""The names of the Dataset, schema 1, and of results: dims, variables, end reasons, attributes, each spelt once."""

from typing import Literal, get_args

SCHEMA = 1

EPISODE = "episode"
TIME = "time"
FIELD = "field"
AGENT = "agent"
TRANSITION = "transition"
RUN = "run"
QUANTILE = "quantile"

LENGTH = "length"
MASK = "mask"
ENV = "env"
START_ROW = "start_row"
START_ITERATION = "start_iteration"
END_REASON = "end_reason"
COMPLETE = "complete"
START_SEEN = "start_seen"
FINAL_KNOWN = "final_known"
ITERATION = "iteration"
ALIVE = "alive"
"""Where a recording has several agents: whether one takes part in a transition."""

EPISODE_COORDS = (
    LENGTH,
    ENV,
    START_ROW,
    START_ITERATION,
    END_REASON,
    COMPLETE,
    START_SEEN,
    FINAL_KNOWN,
)
"""Coordinates over `episode` that every Dataset has, in their order of display."""

RESERVED = frozenset({EPISODE, TIME, FIELD, TRANSITION, RUN, MASK, ITERATION, QUANTILE, *EPISODE_COORDS})
"""Names a field cannot have; a field called so gets a trailing underscore."""

FINAL_PREFIX = "final_"

EndReason = Literal["terminated", "truncated", "done", "cut"]
TERMINATED, TRUNCATED, DONE, CUT = get_args(EndReason)
END_REASONS: tuple[str, ...] = get_args(EndReason)

At = Literal["first", "last"]
"""The transition of an episode whose value stands for all of it."""
Incomplete = Literal["keep", "drop"]
"""What becomes of episodes that are not complete."""

PADDING_ATTR = "padding"
RECORDED_DTYPE_ATTR = "recorded_dtype"
ROLE_ATTR = "role"
"""Attribute of a field that fills a slot of the convention: `"action"`, `"reward"`, `"observation"`."""
AGENT_ATTR = "agent"
"""Attribute of a field of agents: `"*"` where it has the dim `agent`, the agent's name where it is one agent's."""
EPISODE_FIELD_ROLE = "episode_field"
"""The role of a recorded field that is shown with one value per episode."""
AXIS_ROLE = "axis"
"""The role of an episode coordinate that was an axis of the arrays, as seeds are."""

SCHEMA_ATTR = "trajlab_schema"
VERSION_ATTR = "trajlab_version"
CONVENTION_ATTR = "convention"
ROWS_SEEN_ATTR = "rows_seen"
ROWS_KEPT_ATTR = "rows_kept"
ROWS_DROPPED_ATTR = "rows_dropped"
ROWS_EVICTED_ATTR = "rows_evicted"
CELLS_UNALIGNED_ATTR = "cells_unaligned"
"""Cells left out since nothing stood before them to read a moved field from."""

# Of results

VALUE = "value"
LABEL = "label"
BIN = "bin"
BIN_LEFT = "bin_left"
BIN_RIGHT = "bin_right"
COUNT = "count"
SHARE = "share"
MEAN = "mean"
STD = "std"
N = "n"
QUANTILES = "quantiles"
RETURN = "return"
RETURN_TO_GO = "return_to_go"
SURVIVAL = "survival"
LOWER = "lower"
UPPER = "upper"
MEDIAN = "median"
RESTRICTED_MEAN = "restricted_mean"
FIRST = "first"
LAST = "last"
ESTIMATE = "estimate"
STATISTIC = "statistic"
LEFT_OUT = "left_out"
"""A variable of a learning curve, and an attribute of results."""
NEXT_VALUE = "next_value"
NEXT_LABEL = "next_label"
PROBABILITY = "probability"
ENTROPY = "entropy"
NGRAM = "ngram"
RUN_LENGTH = "run_length"
NUM_OPEN = "num_open"
X_BIN, X_BIN_LEFT, X_BIN_RIGHT = "x_bin", "x_bin_left", "x_bin_right"
Y_BIN, Y_BIN_LEFT, Y_BIN_RIGHT = "y_bin", "y_bin_left", "y_bin_right"
LAG = "lag"
FRACTION = "fraction"
EVENT = "event"
EVENT_TIME = "event_time"
REACHED = "reached"
CENSORED = "censored"
AUTOCORRELATION = "autocorrelation"
SIDE = "side"
SIDES = LOW, INSIDE, HIGH = "low", "inside", "high"
CLIPPED = "clipped"
MEAN_DIFFERENCE = "mean_difference"
NUM_REACHED = "num_reached"

HISTOGRAM_NAMES = frozenset({VALUE, LABEL, BIN, BIN_LEFT, BIN_RIGHT, COUNT, SHARE})
"""Names that a histogram has for itself."""
TRACE_NAMES = frozenset({MEAN, STD, N, QUANTILE, QUANTILES})
"""Names that a trace has for itself."""
ALIGNED_NAMES = frozenset({LAG, FRACTION})
"""Axes of a trace other than `time`."""
SURVIVAL_NAMES = frozenset({SURVIVAL, LOWER, UPPER, N, MEDIAN, RESTRICTED_MEAN})
"""Names that a survival curve has for itself."""
OUTCOME_NAMES = frozenset({COUNT, SHARE, FIRST, LAST})
"""Names that outcomes have for themselves."""
LEARNING_NAMES = frozenset({STATISTIC, ESTIMATE, LOWER, UPPER, N, LEFT_OUT, FIRST, LAST})
"""Names that a learning curve has for itself."""
PAIR_NAMES = frozenset({VALUE, LABEL, NEXT_VALUE, NEXT_LABEL, COUNT, SHARE, PROBABILITY})
"""Names that counts of pairs of actions have for themselves."""
RATE_NAMES = frozenset({VALUE, LABEL, COUNT, SHARE, ENTROPY, N})
"""Names that rates of actions over time, and their entropy, have for themselves."""
NGRAM_NAMES = frozenset({N, NGRAM, LABEL, COUNT, SHARE})
"""Names that a table of n-grams has for itself."""
ACTION_RUN_NAMES = frozenset({VALUE, LABEL, RUN_LENGTH, COUNT, N, MEAN, MEDIAN, NUM_OPEN})
"""Names that runs of actions have for themselves."""
GRID_NAMES = frozenset({X_BIN, X_BIN_LEFT, X_BIN_RIGHT, Y_BIN, Y_BIN_LEFT, Y_BIN_RIGHT, COUNT, SHARE})
"""Names that counts over the bins of two components have for themselves."""
ACTION_GRID_NAMES = GRID_NAMES | {VALUE, LABEL, MEAN, STD, N}
"""Names that actions over the bins of a state have for themselves."""
SATURATION_NAMES = frozenset({SIDE, COUNT, SHARE, CLIPPED, MEAN_DIFFERENCE})
"""Names that shares of actions at their bounds have for themselves."""
AUTOCORRELATION_NAMES = frozenset({AUTOCORRELATION, LAG, N})
"""Names that an autocorrelation has for itself."""
EVENT_NAMES = frozenset({EVENT, EVENT_TIME, REACHED, CENSORED})
"""Names that times of events have for themselves."""
MILESTONE_NAMES = frozenset({EVENT, SHARE, N, MEDIAN, NUM_REACHED})
"""Names that milestones have for themselves."""
RESULT_NAMES = frozenset[str]().union(
    HISTOGRAM_NAMES,
    TRACE_NAMES,
    ALIGNED_NAMES,
    SURVIVAL_NAMES,
    OUTCOME_NAMES,
    LEARNING_NAMES,
    PAIR_NAMES,
    RATE_NAMES,
    NGRAM_NAMES,
    ACTION_RUN_NAMES,
    GRID_NAMES,
    ACTION_GRID_NAMES,
    SATURATION_NAMES,
    AUTOCORRELATION_NAMES,
    EVENT_NAMES,
    MILESTONE_NAMES,
)
"""Names that results over groups have for themselves."""

MADE_BY_ATTR = "made_by"
ALIGN_ATTR = "align"
FIELD_ATTR = "field"
GROUPS_ATTR = "groups"
NUM_EPISODES_ATTR = "num_episodes"
NUM_COMPLETE_ATTR = "num_complete"
NUM_INCOMPLETE_ATTR = "num_incomplete"
NUM_CUT_ATTR = "num_cut"
NUM_START_UNSEEN_ATTR = "num_start_unseen"
NUM_TRANSITIONS_ATTR = "num_transitions"
NUM_NAN_ATTR = "num_nan"
NUM_BELOW_ATTR = "num_below"
NUM_ABOVE_ATTR = "num_above"
NUM_OUTSIDE_ATTR = "num_outside"
NUM_STATE_NAN_ATTR = "num_state_nan"
LEFT_OUT_ATTR = LEFT_OUT
SORT_ATTR = "sort"
WINDOW_ATTR = "window"
TOLERANCE_ATTR = "tolerance"
EXECUTED_ATTR = "executed"
LOW_ATTR, HIGH_ATTR = LOW, HIGH
"""Bounds: attributes of a result, and of a field whose space tells them."""
SPACE_SIZE_ATTR, SPACE_START_ATTR = "n", "start"
"""How many whole numbers a field's space has, and the first of them."""


def units_name(dim: str) -> str:
    """Return the name of the coordinate that holds one unit per label of `dim`."""
    return f"{dim}_units"


def final_name(observation: str) -> str:
    """Return the name of the variable that holds the final value of the field `observation`."""
    return FINAL_PREFIX + observation


def free_name(name: str) -> str:
    """Return `name`, with a trailing underscore where it is reserved."""
    return f"{name}_" if name in RESERVED else name
