"""The documentation: it builds without a warning, its pages work, its examples run."""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import robustnmf
from tests.browsing import (
    complaints,
    narrow,
    on_paper,
    overflow,
    printed_pages,
    reached_by_tab,
    wait_until,
)

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
TUTORIALS = [
    page for page in sorted((ROOT / "docs/tutorials").glob("*.md")) if page.stem != "index"
]
PAGES = [
    "index.html",
    "guide/index.html",
    "guide/start.html",
    "guide/samples.html",
    "tutorials/index.html",
    "robustness.html",
    "about.html",
    "faq.html",
    "theory.html",
    "performance.html",
    "reproduction.html",
    "auto_examples/index.html",
    "auto_examples/entries/plot_path.html",
    "reference.html",
    "generated/robustnmf.RobustNMF.html",
    "contributing.html",
]
BUILT = ("_build", "auto_examples", "generated", "sg_execution_times.rst")
"""What a build writes beside the sources of the pages."""

NEEDS = {"plot_dask": "dask", "plot_pipeline": "pandas"}


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a word."""

    def log_message(self, *told):
        """Nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages on a server of this machine; examples are not run for them."""
    pytest.importorskip("sphinx_gallery", reason="the packages of the extra docs are missing")
    folder = tmp_path_factory.mktemp("html")
    # A copy, as examples are written beside the sources; without what an earlier build wrote there,
    # such as the page of an example that is gone.
    work = tmp_path_factory.mktemp("work")
    for name in ("examples", "results", "benchmarks", "src"):
        (work / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs", work / "docs", ignore=shutil.ignore_patterns(*BUILT))
    for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        (work / name).symlink_to(ROOT / name)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0",
         "-b", "html", str(work / "docs"), str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_pages_work_in_a_browser(site, browser):
    complaints(browser)
    for name in PAGES:
        browser.get(f"{site}/{name}")
        wait_until(browser, "return document.querySelector('main h1') !== null")
        wait_until(browser, "return !window.MathJax || !!MathJax.startup.document")
        assert complaints(browser) == [], name
        broken = (
            "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        )
        assert browser.execute_script(broken) == [], name
        focus = reached_by_tab(browser)
        assert {"A", "BUTTON"} & set(focus), name
        assert not [tag for tag in focus if "unseen" in tag], name
        with narrow(browser):
            assert overflow(browser) <= 1, name
        with on_paper(browser):
            shown = "return getComputedStyle(document.querySelector('.bd-header')).display"
            assert browser.execute_script(shown) == "none", name
        links_lead_somewhere(site, browser, name)
    assert printed_pages(browser) >= 1
    browser.get(f"{site}/theory.html")  # equations are drawn without a network
    wait_until(browser, "return document.querySelectorAll('mjx-container').length > 20")
    assert complaints(browser) == []


def links_lead_somewhere(site, browser, name):
    links = browser.execute_script(
        "return [...document.querySelectorAll('main a[href]')].map(a => a.href)"
    )
    inside = {link.split("#")[0] for link in links if link.startswith(site)}
    for link in inside:
        status = browser.execute_async_script(
            "const done = arguments[1];"
            "fetch(arguments[0], {method: 'HEAD'}).then(r => done(r.status), () => done(0))",
            link,
        )
        assert status == 200, (name, link)


@pytest.mark.extra
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    pytest.importorskip("matplotlib", reason="examples draw with matplotlib")
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason=f"{path.stem} needs it")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-W", "ignore:.*non-interactive", str(path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


TASKS = {
    "gene programs": {"consensus", "anndata", "scanpy"},
    "a robust factorisation": {"RobustNMF", "EucNMF"},
    "a path of hyperparameters": {"fit_path", "Entropy"},
    "the number of components": {"select_rank"},
    "stable components": {"ConsensusNMF", "top_features", "stability_"},
    "outliers and their features": {"RobustNMFDetector", "score_samples", "plot_explanation"},
    "displays": {"displays"},
    "spoiled samples": {"corruptions", "metrics"},
    "counts in a sparse table": {"csr_array", "kullback-leibler"},
    "missing values": {"nan", "inverse_transform"},
    "known components": {"fixed_components"},
    "a pipeline": {"make_pipeline"},
    "a stream": {"partial_fit"},
    "a file larger than memory": {"codes_path", "checkpoint"},
    "a cluster": {"dask"},
    "a GPU": {"cuda", "cupy", "torch", "save", "load"},
    "faces from the user's files": {"VARIABLE", "load_dataset"},
    "a weighting of one's own": {"Separable"},
    "topics": {"CountVectorizer", "kullback-leibler"},
    "audio": {"stft", "itakura-saito"},
    "spikes and bad samples": {"truncated", "entry_weights"},
    "beside scikit-learn": {"NMF"},
}
"""What users come for, and the names that an example of it has in its code."""


def names_in(path):
    """Names, attributes, keywords, imported modules and short texts in the code of a file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        for field in ("id", "attr", "arg", "module", "name", "value"):
            value = getattr(node, field, None)
            if isinstance(value, str) and len(value) < 40:
                names |= {value, *value.split(".")}
    return names


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_an_example(task):
    assert TASKS[task] <= set().union(*map(names_in, EXAMPLES))


def test_every_example_has_a_place_in_the_gallery():
    source = ast.parse((ROOT / "docs/gallery.py").read_text())
    (sections,) = (
        ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "SECTIONS"
    )
    listed = [
        ROOT / "examples" / section / f"plot_{name}.py"
        for section, names in sections.items()
        for name in names
    ]
    assert sorted(listed) == EXAMPLES


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_code_of_a_tutorial_runs(page):
    pytest.importorskip("pandas", reason="tutorials use data frames")
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert not failed
    assert tried


def test_the_times_of_a_gpu_are_those_that_were_measured():
    """The example about GPUs states seconds; a script that is downloaded has no result files."""
    measured = json.loads((ROOT / "benchmarks/results/defaults_gpu.json").read_text())
    source = (ROOT / "examples/large/plot_gpu.py").read_text()
    stated = ast.literal_eval(re.search(r"^H200 = (\{.*?\})$", source, re.M | re.S)[1])
    assert measured["gpu"] == "NVIDIA H200"
    assert stated == {
        (*(int(side.replace(",", "")) for side in row["table"].split(" x ")), row["rank"]): row[
            "fit, s"
        ]
        for row in measured["rows"]
    }


def test_the_reference_has_every_public_name():
    listed = set(
        re.findall(r"^   ([A-Za-z][\w.]*)$", (ROOT / "docs/reference.rst").read_text(), re.M)
    )
    modules = {name.split(".")[0] for name in listed if "." in name} - {"anndata"}  # not for *
    assert set(robustnmf.__all__) == {name for name in listed if "." not in name} | modules
    for name in listed:
        item = robustnmf
        for part in name.split("."):
            item = getattr(item, part)
