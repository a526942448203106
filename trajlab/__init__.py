"""Record RL rollouts in JAX, episode by episode, and look at them as labelled xarray data."""

from trajlab.version import package_version

# Record
from trajlab.recorder import Recorder, from_rollout
from trajlab.capture.convention import Convention
from trajlab.dataset.from_episodes import from_episodes

# Take the rows as they come
from trajlab.consumers.consumer import Batch, Consumer
from trajlab.consumers.histogram import StreamingHistogram
from trajlab.consumers.trace import StreamingTrace

# Record inside jit
from trajlab.buffer import Buffer, append, init_buffer, to_dataset

# Look at the Dataset
from trajlab.dataset.schema import validate
from trajlab.dataset.views import episode, transitions
from trajlab.dataset.stack import stack_fields
from trajlab.dataset.concat import concat

# Files
from trajlab.io.jsonl import JsonlWriter, read_jsonl, write_jsonl

# Analyse
from trajlab.analysis.tables import episode_table, to_dataframe
from trajlab.analysis.summary import summary
from trajlab.analysis.outliers import outliers
from trajlab.analysis.returns import returns
from trajlab.analysis.return_to_go import return_to_go
from trajlab.analysis.action_histogram import action_histogram
from trajlab.analysis.action_transitions import action_transitions
from trajlab.analysis.action_rates import action_rates
from trajlab.analysis.action_entropy import action_entropy
from trajlab.analysis.action_ngrams import action_ngrams
from trajlab.analysis.action_runs import action_runs
from trajlab.analysis.action_raster import action_raster
from trajlab.analysis.state_trace import state_trace
from trajlab.analysis.occupancy import occupancy
from trajlab.analysis.action_by_state import action_by_state
from trajlab.analysis.autocorrelation import autocorrelation
from trajlab.analysis.action_saturation import action_saturation
from trajlab.analysis.state_histogram import state_histogram
from trajlab.analysis.survival import survival
from trajlab.analysis.outcomes import outcomes
from trajlab.analysis.event_times import event_times
from trajlab.analysis.milestones import milestones
from trajlab.analysis.align import align
from trajlab.analysis.first_action_time import first_action_time
from trajlab.analysis.learning_curve import learning_curve

# Plot
from trajlab.plot.action_histogram import plot_action_histogram
from trajlab.plot.action_transitions import plot_action_transitions
from trajlab.plot.action_rates import plot_action_rates
from trajlab.plot.action_entropy import plot_action_entropy
from trajlab.plot.action_ngrams import plot_action_ngrams
from trajlab.plot.action_runs import plot_action_runs
from trajlab.plot.action_saturation import plot_action_saturation
from trajlab.plot.action_raster import plot_action_raster
from trajlab.plot.returns import plot_returns
from trajlab.plot.return_to_go import plot_return_to_go
from trajlab.plot.state_trace import plot_state_trace
from trajlab.plot.action_by_state import plot_action_by_state
from trajlab.plot.occupancy import plot_occupancy
from trajlab.plot.path import plot_path
from trajlab.plot.autocorrelation import plot_autocorrelation
from trajlab.plot.state_histogram import plot_state_histogram
from trajlab.plot.survival import plot_survival
from trajlab.plot.outcomes import plot_outcomes
from trajlab.plot.learning_curve import plot_learning_curve
from trajlab.plot.overview import plot_overview
from trajlab.plot.milestones import plot_milestones
from trajlab.plot.first_action_time import plot_first_action_time

__version__ = package_version()

__all__ = [
    "Batch",
    "Buffer",
    "Consumer",
    "Convention",
    "JsonlWriter",
    "Recorder",
    "StreamingHistogram",
    "StreamingTrace",
    "action_by_state",
    "action_entropy",
    "action_histogram",
    "action_ngrams",
    "action_raster",
    "action_rates",
    "action_runs",
    "action_saturation",
    "action_transitions",
    "align",
    "append",
    "autocorrelation",
    "concat",
    "episode",
    "episode_table",
    "event_times",
    "first_action_time",
    "from_episodes",
    "from_rollout",
    "init_buffer",
    "learning_curve",
    "milestones",
    "occupancy",
    "outcomes",
    "outliers",
    "plot_action_by_state",
    "plot_action_entropy",
    "plot_action_histogram",
    "plot_action_ngrams",
    "plot_action_raster",
    "plot_action_rates",
    "plot_action_runs",
    "plot_action_saturation",
    "plot_action_transitions",
    "plot_autocorrelation",
    "plot_first_action_time",
    "plot_learning_curve",
    "plot_milestones",
    "plot_occupancy",
    "plot_outcomes",
    "plot_overview",
    "plot_path",
    "plot_return_to_go",
    "plot_returns",
    "plot_state_histogram",
    "plot_state_trace",
    "plot_survival",
    "read_jsonl",
    "return_to_go",
    "returns",
    "stack_fields",
    "state_histogram",
    "state_trace",
    "summary",
    "survival",
    "to_dataframe",
    "to_dataset",
    "transitions",
    "validate",
    "write_jsonl",
]
