"""The attributes of a variable that say what was recorded, and what is shown where no transition is."""

import numpy as np

from trajlab import names
from trajlab.padding import padding_text, shown_dtype


def about_padding(dtype: np.dtype) -> dict[str, str]:
    """Return the attributes of a field that was recorded as `dtype`."""
    return {names.PADDING_ATTR: padding_text(shown_dtype(dtype)), names.RECORDED_DTYPE_ATTR: dtype.name}
