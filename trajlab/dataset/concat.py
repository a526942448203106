"""Several recordings put together as one Dataset."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from trajlab import names
from trajlab.dataset.fields import padding_of
from trajlab.dataset.joined import JoinedArray, Part
from trajlab.dataset.lazy import lazy_variable
from trajlab.dataset.schema import find_problems
from trajlab.errors import raise_all

_SUMMED = (
    names.ROWS_SEEN_ATTR,
    names.ROWS_KEPT_ATTR,
    names.ROWS_DROPPED_ATTR,
    names.ROWS_EVICTED_ATTR,
    names.CELLS_UNALIGNED_ATTR,
)
