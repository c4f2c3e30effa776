"""What README and the pages show is what the result files hold."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HISTORY = "## Weights and starts"
"""What follows this heading are numbers of searches that are over."""


@pytest.fixture(scope="module")
def shown():
    specification = importlib.util.spec_from_file_location("shown", ROOT / "docs" / "shown.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["shown"] = module
    specification.loader.exec_module(module)
    return module


def test_tables_are_those_of_the_result_files(shown):
    for name, (page, make) in shown.BLOCKS.items():
        found = shown.pattern(name).search((ROOT / page).read_text())
        assert found is not None, f"{page} has no block named {name}"
        inside = found[0].split("\n", 1)[1].rsplit("\n", 1)[0].strip()
        assert inside == make(), f"{name} in {page} is stale: run python docs/shown.py"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *(
            f"docs/{name}.md"
            for name in (
                "about",
                "robustness",
                "reproduction",
                "protocol",
                "targets",
                "tried",
            )
        ),
    ],
)
def test_no_table_of_results_is_written_by_hand(shown, page):
    text = (ROOT / page).read_text().partition(HISTORY)[0]
    for name in shown.BLOCKS:
        text = shown.pattern(name).sub("", text)
    by_hand = [
        line for line in text.splitlines()
        if line.startswith("|") and len(re.findall(r"\d\.\d", line)) > 1
    ]  # fmt: skip
    assert by_hand == []


def test_a_registered_weighting_is_missed_in_the_pages(shown, monkeypatch):
    weightings = sys.modules["parts"].WEIGHTINGS
    described = r"""Weights of my own.

    Use it for
    tests.

    .. math:: \phi = z, \qquad w = |z|

    Examples
    --------
    """
    mine = type("Mine", (weightings["l21"],), {"__doc__": described})
    plain = type("Plain", (mine,), {"__doc__": "Weights without a formula."})
    for kind in (mine, plain):
        monkeypatch.setitem(weightings, kind.__name__.lower(), kind)
    assert r'| `"mine"` | $w = \vert{}z\vert{}$ | tests |' in shown.weightings()
    assert '| `"plain"` |  | Weights without a formula |' in shown.weightings()
    assert "   Mine\n   Plain" in shown.reference_of_weightings()
    with pytest.raises(AssertionError, match="stale"):
        test_tables_are_those_of_the_result_files(shown)


def test_pictures_are_of_the_result_files(shown):
    for name, (files, _) in shown.PICTURES.items():
        digest = shown.digest_in((shown.IMAGES / name).read_bytes())
        assert digest == shown.digest_of(files), f"{name} is stale: run python docs/shown.py"


def test_every_picture_of_the_pages_has_its_data(shown):
    folders = [ROOT / "docs", *(ROOT / "docs" / name for name in ("guide", "tutorials"))]
    pages = [ROOT / "README.md", *(page for folder in folders for page in folder.glob("*.md"))]
    named = set(re.findall(r"images/([\w.]+)", "".join(page.read_text() for page in pages)))
    assert named == set(shown.PICTURES) == {path.name for path in shown.IMAGES.iterdir()}


def test_a_number_that_changes_is_noticed(shown, tmp_path, monkeypatch):
    folder = tmp_path / "results"
    for part in ("pictures", "paper", "contamination", "real", "real_entries"):
        for source in (shown.RESULTS / part).rglob("*"):
            if source.suffix in {".csv", ".md", ".json"}:
                target = folder / source.relative_to(shown.RESULTS)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
    path = folder / "contamination" / "errors_held_out.csv"
    path.write_text(re.sub(r"RobustNMF,\S+ /", "RobustNMF,7.777 /", path.read_text()))
    monkeypatch.setattr(shown, "RESULTS", folder)
    assert "7.777" in shown.before_and_after()
    with pytest.raises(AssertionError, match="stale"):
        test_tables_are_those_of_the_result_files(shown)


def test_a_digest_is_read_back(shown):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    png = shown.as_png(Figure(figsize=(1, 1)))
    assert shown.digest_in(png) is None
    assert shown.digest_in(shown.with_digest(png, "0123")) == "0123"
