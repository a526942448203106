"""Returns to go over the steps of an episode."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from trajlab.analysis.common import field_of
from trajlab.analysis.grouping.cut import GroupsArgument, Numbers
from trajlab.analysis.return_to_go import return_to_go
from trajlab.analysis.state_trace import DEFAULT_QUANTILES
from trajlab.names import RETURN_TO_GO
from trajlab.plot.state_trace import DEFAULT_EPISODES, plot_state_trace

if TYPE_CHECKING:
    import matplotlib.axes


def plot_return_to_go(
    ds: xr.Dataset,
    *,
    reward: str = "reward",
    discount: float | int = 1.0,
    by: str | None = None,
    quantiles: Numbers | Literal[False] | None = DEFAULT_QUANTILES,
    groups: GroupsArgument = None,
    episodes: int | Iterable[int] | Literal[False] = DEFAULT_EPISODES,
    ax: Any = None,
    **kwargs: Any,
) -> "matplotlib.axes.Axes | np.ndarray":
    """Draw `return_to_go` at each step: mean and quantiles over the episodes that are still alive, and single episodes.

    Parameters
    ----------
    ds, reward, discount
        As in `return_to_go`.
    by, quantiles, groups, episodes, ax, **kwargs
        As in `plot_state_trace`, which draws it; ``by="complete"`` sets those apart whose values may be lower bounds.

    Returns
    -------
    Axes or array of Axes
        As `plot_state_trace`.

    Raises
    ------
    KeyError, TypeError, ValueError
        As `return_to_go` and `plot_state_trace`.
    """
    ds, _ = field_of(ds, reward, along=by)
    sums = return_to_go(ds, reward=reward, discount=discount)
    if discount != 1:
        sums.attrs["long_name"] += f", discount {float(discount):g}"
    return plot_state_trace(
        ds.assign({RETURN_TO_GO: sums}),
        RETURN_TO_GO,
        by=by,
        quantiles=quantiles,
        groups=groups,
        episodes=episodes,
        ax=ax,
        **kwargs,
    )
