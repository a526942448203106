"""The checker that `conftest.py` puts around every function of trajlab."""

from typing import Any, Self

from beartype import BeartypeConf, FrozenDict, beartype

# jaxtyping decorates methods one by one, where beartype cannot tell what Self is.
check = beartype(conf=BeartypeConf(hint_overrides=FrozenDict({Self: Any})))
