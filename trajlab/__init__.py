"""Record RL rollouts in JAX, episode by episode, and look at them as labelled xarray data."""

from importlib.metadata import version

# Record
from trajlab.recorder import Recorder, from_rollout
from trajlab.capture.convention import Convention
from trajlab.dataset.from_episodes import from_episodes

# Record inside jit
from trajlab.buffer import Buffer, append, init_buffer, to_dataset

# Look at the Dataset
from trajlab.dataset.schema import validate
from trajlab.dataset.views import episode, transitions
from trajlab.dataset.stack import stack_fields
from trajlab.dataset.concat import concat

# Analyse
from trajlab.analysis.tables import episode_table, to_dataframe
from trajlab.analysis.summary import summary
from trajlab.analysis.outliers import outliers
from trajlab.analysis.returns import returns
from trajlab.analysis.actions import action_histogram
from trajlab.analysis.action_transitions import action_transitions
from trajlab.analysis.action_rates import action_entropy, action_rates
from trajlab.analysis.states import state_trace
from trajlab.analysis.survival import survival
from trajlab.analysis.outcomes import outcomes
from trajlab.analysis.events import event_times
from trajlab.analysis.milestones import milestones
from trajlab.analysis.first_action import first_action_time
from trajlab.analysis.learning import learning_curve

# Plot
from trajlab.plot.actions import plot_action_histogram
from trajlab.plot.action_transitions import plot_action_transitions
from trajlab.plot.action_rates import plot_action_rates
from trajlab.plot.action_entropy import plot_action_entropy
from trajlab.plot.returns import plot_returns
from trajlab.plot.states import plot_state_trace
from trajlab.plot.survival import plot_survival
from trajlab.plot.outcomes import plot_outcomes
from trajlab.plot.learning import plot_learning_curve
from trajlab.plot.milestones import plot_milestones
from trajlab.plot.first_action import plot_first_action_time

__version__ = version("trajlab")

__all__ = [
    "Buffer",
    "Convention",
    "Recorder",
    "action_entropy",
    "action_histogram",
    "action_rates",
    "action_transitions",
    "append",
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
    "outcomes",
    "outliers",
    "plot_action_entropy",
    "plot_action_histogram",
    "plot_action_rates",
    "plot_action_transitions",
    "plot_first_action_time",
    "plot_learning_curve",
    "plot_milestones",
    "plot_outcomes",
    "plot_returns",
    "plot_state_trace",
    "plot_survival",
    "returns",
    "stack_fields",
    "state_trace",
    "summary",
    "survival",
    "to_dataframe",
    "to_dataset",
    "transitions",
    "validate",
]
