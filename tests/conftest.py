"""What every test runs under: eight CPU devices, strict promotion in JAX, checked annotations, no windows."""

import os
import signal
import sys
import threading
import warnings

os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis
import jax
import jaxtyping
import matplotlib.pyplot as plt
import pytest

# Compiling makes first examples slow, which is no failure; on CI the examples are the same at every run.
hypothesis.settings.register_profile("trajlab", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("trajlab")


# A shell starts what runs in its background with interrupts ignored; tests that send one would find it swallowed.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Speed is measured as users have it: one device, nothing checked.
if "benchmark" not in sys.argv:
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=8".strip()
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    # Here and not in a hook of pytest's, since conftest files of folders given to it import trajlab before that.
    jaxtyping.install_import_hook("trajlab", "annotations.check")


def pytest_collection_modifyitems(config, items):
    """With the oldest versions allowed every fourth of a test's cases is enough: the same for all workers."""
    if os.environ.get("TRAJLAB_EXAMPLES") != "brief":
        return
    counts: dict[tuple[object, str], int] = {}
    kept, left = [], []
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        counts[test] = counts.get(test, -1) + 1
        (left if counts[test] % 4 else kept).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(params=["no episode", "off"])
def blank(request):
    """A Dataset of no episode and no field."""
    import trajlab as tl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tl.from_episodes([]) if request.param == "no episode" else tl.Recorder(enabled=False).to_dataset()
