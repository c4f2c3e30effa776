"""The public API: exports, types, and the cost of the import."""

import inspect
import subprocess
import sys

import pytest

import robustnmf
from robustnmf import benchmark, corruptions, datasets, displays, exceptions, metrics
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS

MODULES = [robustnmf, benchmark, corruptions, datasets, displays, metrics]
NAMES = [(module, name) for module in MODULES for name in module.__all__]


def functions_of(value):
    """A function, or the public methods that a class of this library defines."""
    if inspect.isfunction(value):
        yield value.__name__, value
    if inspect.isclass(value):
        for kind in value.__mro__:
            if kind.__module__.startswith("robustnmf"):
                for name, member in vars(kind).items():
                    if name == "__init__" or not name.startswith("_"):
                        function = getattr(member, "__func__", member)
                        if inspect.isfunction(function):
                            yield f"{kind.__name__}.{name}", inspect.unwrap(function)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda x: getattr(x, "__name__", x))
def test_the_public_api_is_typed_and_documented(module, name):
    value = getattr(module, name)
    for called, function in functions_of(value):
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        bare = [p.name for p in parameters if p.annotation is p.empty]
        assert not bare, (called, bare)
        if function.__name__ != "__init__":
            assert signature.return_annotation is not signature.empty, called
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)


@pytest.mark.parametrize("registry", [LOSSES, STRUCTURES, WEIGHTINGS], ids=lambda r: next(iter(r)))
def test_registered_classes_are_public(registry):
    for kind in registry.values():
        assert getattr(robustnmf, kind.__name__) is kind
        assert kind.__name__ in robustnmf.__all__


def test_every_warning_is_public():
    names = [n for n, kind in vars(exceptions).items() if isinstance(kind, type)]
    assert names
    assert set(names) <= set(robustnmf.__all__)


def test_a_part_is_public_once_it_is_registered(monkeypatch):
    mine = type("Mine", (WEIGHTINGS["l21"],), {})
    monkeypatch.setitem(WEIGHTINGS, "mine", mine)
    assert "Mine" in robustnmf.__all__
    assert robustnmf.Mine is mine
    monkeypatch.delattr(robustnmf, "Mine")


def test_unknown_attributes_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'RobustPCA'"):
        _ = robustnmf.RobustPCA
    assert set(robustnmf.__all__) <= set(dir(robustnmf))


def test_importing_the_package_imports_nothing_else():
    program = (
        "import sys, robustnmf; print({'sklearn', 'scipy', 'numba', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"


def test_star_imports_bring_all_of_it():
    found = {}
    exec("from robustnmf import *", found)
    assert set(robustnmf.__all__) <= set(found)
