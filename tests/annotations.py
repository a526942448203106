"""The checker that `conftest.py` puts around the functions of trajlab."""

from collections.abc import Callable
from typing import Any, Self

from beartype import BeartypeConf, FrozenDict, beartype

PUBLIC = """
    Batch Buffer Consumer Convention JsonlWriter Recorder StreamingHistogram StreamingTrace action_by_state
    action_entropy action_histogram action_ngrams action_raster action_rates action_runs action_saturation
    action_transitions align append autocorrelation concat episode episode_table event_times first_action_time
    from_episodes from_rollout init_buffer learning_curve milestones occupancy outcomes outliers
    plot_action_by_state plot_action_entropy plot_action_histogram plot_action_ngrams plot_action_raster
    plot_action_rates plot_action_runs plot_action_saturation plot_action_transitions plot_autocorrelation
    plot_first_action_time plot_learning_curve plot_milestones plot_occupancy plot_outcomes plot_overview plot_path
    plot_return_to_go plot_returns plot_state_histogram plot_state_trace plot_survival read_jsonl return_to_go
    returns stack_fields state_histogram state_trace summary survival to_dataframe to_dataset transitions validate
    write_jsonl
""".split()

# jaxtyping decorates methods one by one, where beartype cannot tell what Self is.
_beartype = beartype(conf=BeartypeConf(hint_overrides=FrozenDict({Self: Any}), is_pep484_tower=True))


def check(function: Callable) -> Callable:
    """Check the annotations of `function` at every call, unless it is public.

    What a user may call parses its own input and says in words what is wrong with it; a checker in front of it
    would only let its tests see other words.
    """
    name, _, method = function.__qualname__.partition(".")
    is_public = name in PUBLIC and (not method.startswith("_") or method == "__init__")
    return function if is_public else _beartype(function)
