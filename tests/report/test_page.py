"""Pages escape what they are given and work in a browser; files appear whole or not at all."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest

from robustnmf.experiments.outcome import Cell, Chart, Grid, Images, Line, Outcome
from robustnmf.experiments.pages import (
    grid_csv,
    grid_markdown,
    interactive,
    still,
    write_reproduction,
)
from robustnmf.experiments.paper import ITEMS
from robustnmf.experiments.protocol import PROTOCOL
from robustnmf.experiments.reproduce import plan, reproduce, scope_of
from robustnmf.experiments.store import Store
from robustnmf.files.output import write_whole
from robustnmf.files.page import (
    Bullets,
    Download,
    Heading,
    Links,
    Paragraph,
    Picture,
    Plot,
    Row,
    Table,
    TableCell,
    mosaic,
    page,
)
from tests.browsing import narrow, overflow, wait_until

pytest.importorskip("plotly", reason="pages need the packages of the extra cli")
pytest.importorskip("matplotlib", reason="pages need the packages of the extra cli")

pytestmark = pytest.mark.xdist_group("reproduction")  # which is made once

HOSTILE = "</script><script>alert('x')</script>\"&"


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    """All tables and figures of a quick run, on fewer iterations."""
    folder = tmp_path_factory.mktemp("reproduction")
    scope = replace(scope_of(quick=True), protocol=replace(PROTOCOL, iterations=5, starts=2))
    store = Store(folder / "trials.sqlite")
    wanted = plan(ITEMS, scope)
    outcomes = reproduce(wanted, store)
    write_reproduction(outcomes, wanted, store, {"date": "today"}, folder)
    return folder, outcomes, wanted


@pytest.mark.extra
def test_everything_is_written(reproduction):
    folder, outcomes, wanted = reproduction
    names = {path.name for path in folder.iterdir()}
    for outcome in outcomes:
        if outcome.grids:
            assert f"{outcome.key}.csv" in names
        else:
            assert {f"{outcome.key}.png", f"{outcome.key}.svg"} <= names
    rows = list(csv.DictReader(StringIO((folder / "trials.csv").read_text())))
    assert len(rows) == wanted.fits
    assert {"dataset", "method", "value", "start", "accuracy", "scaling"} <= set(rows[0])
    tables = (folder / "tables.md").read_text()
    assert "EucNMF" in tables
    assert "FWRNMF or EWRNMF is best on" in tables


def test_the_page_works_in_a_browser(reproduction, browser):
    folder, outcomes, _ = reproduction
    browser.get((folder / "report.html").as_uri())
    charts = sum(len(outcome.charts) for outcome in outcomes)
    drawn = "return document.querySelectorAll('.plot .main-svg').length >= arguments[0]"
    wait_until(browser, drawn, charts)
    drawn = browser.execute_script(
        "return Array.from(document.querySelectorAll('div.plot')).map("
        "p => p.querySelectorAll('.scatterlayer .trace').length)"
    )
    assert len(drawn) == charts
    assert all(drawn)
    broken = browser.execute_script(
        "return Array.from(document.images).filter(i => !i.complete || !i.naturalWidth).length"
    )
    assert broken == 0
    assert [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []


def test_tables_sort_by_numbers(reproduction, browser):
    folder, _, _ = reproduction
    browser.get((folder / "report.html").as_uri())
    keys = browser.execute_script(
        "return Array.from(document.querySelectorAll('[data-sort]')).map("
        "c => Number(c.dataset.sort))"
    )
    assert keys
    assert all(isinstance(key, int | float) for key in keys)
    table = browser.find_elements("css selector", "table.sortable")[1]
    head = table.find_elements("css selector", "th button")[1]

    def numbers():
        cells = table.find_elements("css selector", "tbody tr td:nth-child(2)")
        return [float(cell.get_attribute("data-sort")) for cell in cells]

    browser.execute_script("arguments[0].click()", head)
    assert numbers() == sorted(numbers(), reverse=True)
    browser.execute_script("arguments[0].click()", head)
    assert numbers() == sorted(numbers())


def test_a_click_on_the_legend_hides_a_line(reproduction, browser):
    folder, _, _ = reproduction
    browser.get((folder / "report.html").as_uri())
    plot = browser.find_element("css selector", "div.plot")
    browser.execute_script("arguments[0].scrollIntoView()", plot)
    entry = plot.find_element("css selector", ".legendtoggle")
    ActionChains = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains
    ActionChains(browser).move_to_element(entry).click().perform()
    hidden = "return arguments[0].data.filter(t => t.visible === 'legendonly').length === 1"
    wait_until(browser, hidden, plot)


def test_hovering_shows_numbers(reproduction, browser):
    folder, _, _ = reproduction
    browser.get((folder / "report.html").as_uri())
    plot = browser.find_element("css selector", "div.plot")
    browser.execute_script(
        "Plotly.Fx.hover(arguments[0], [{curveNumber: 0, pointNumber: 1}])", plot
    )
    assert plot.find_elements("css selector", ".hoverlayer .hovertext")


def test_a_phone_can_read_it(reproduction, browser):
    folder, _, _ = reproduction
    with narrow(browser):
        browser.get((folder / "report.html").as_uri())
        assert overflow(browser) <= 1


def test_hostile_names_stay_text(tmp_path, browser):
    chart = Chart(HOSTILE, HOSTILE, HOSTILE, [Line(HOSTILE, [1, 2], [1.0, 2.0])])
    content = [
        Heading(HOSTILE, HOSTILE), Bullets([HOSTILE]), Links([(HOSTILE, HOSTILE)]),
        Row([interactive(chart)]), Download(HOSTILE, b"a,b"),
    ]  # fmt: skip
    cell = TableCell(HOSTILE, 1.0, (HOSTILE,), HOSTILE).html()
    assert "<script" not in cell
    path = tmp_path / "page.html"
    path.write_text(page(HOSTILE, content))
    browser.get(path.as_uri())
    assert browser.title == HOSTILE
    assert browser.find_element("css selector", "h2").text == HOSTILE
    assert len(browser.find_elements("css selector", ".plot .main-svg")) > 0


def test_a_number_that_is_none_is_refused_in_plots():
    with pytest.raises(ValueError, match="JSON"):
        Plot([{"y": [float("nan")]}], {}, "").html()


def test_grids_become_csv_and_markdown():
    grid = Grid("t", ("a", "b"), [[Cell("x|y"), Cell("1", 1.0, ("best",))]], ["note"])
    assert grid_csv(grid) == b"a,b\r\nx|y,1\r\n"
    assert grid_markdown(grid) == "**t**\n\n| a | b |\n| --- | --- |\n| x\\|y | **1** |\n\nnote\n"


def test_pictures_are_the_same_bytes_every_time():
    images = Images("i", np.random.default_rng(0).random((5, 3, 4)))
    outcome = Outcome("f", "title", "caption", images=[images])
    assert still(outcome) == still(outcome)
    assert still(Outcome("t", "", "")) == {}
    assert mosaic(images.images).shape == (7, 14)


def test_everything_is_escaped():
    html = page(
        HOSTILE,
        [Paragraph(HOSTILE), Table([HOSTILE], [[HOSTILE]], HOSTILE), Picture(b"png", HOSTILE)],
    )
    assert html.count("<script") == 1  # the page's own
    assert html.count("&lt;script&gt;") == 7
    assert 'alt="&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&amp;"' in html


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
