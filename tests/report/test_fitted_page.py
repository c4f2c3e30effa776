"""The page of a fit: what its plots and its table hold."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from robustnmf import RobustNMF, select_rank
from robustnmf.engine import SlicedReader
from robustnmf.estimators import RankSelection
from robustnmf.files.page import Plot, Row, page
from robustnmf.report.fitted import Fit
from robustnmf.report.fitted_page import (
    contents,
    contribution_shares,
    rank_curve,
    samples_table,
    top_features_table,
)
from robustnmf.report.fitted_plots import (
    MAX_CATEGORIES,
    codes_plot,
    component_corners,
    draw_samples,
    energies_plot,
    log_axis,
    map_plot,
)
from robustnmf.tables import StoredRows, Table, count_missing
from tests.browsing import complaints, narrow, overflow, wait_until
from tests.problems import noisy_low_rank

graph_objects = pytest.importorskip("plotly.graph_objects", reason="needs the extra cli")
HOSTILE = "</script><b onmouseover=alert(1)>\u202e"


def fit_of(X, k=3, *, features=None, colors=None, **parameters):
    model = RobustNMF(k, random_state=0, max_iter=200, **parameters)
    codes = model.fit_transform(X)
    n, m = X.shape
    names = features or [f"{HOSTILE}{j}" for j in range(m)]
    table = Table(X, [f"{HOSTILE}{i}" for i in range(n)], names, ["a note"], colors=colors)
    color_by = None if colors is None else HOSTILE
    return Fit(model, table, codes, 1.0, warnings=[f"beware of {HOSTILE}"], color_by=color_by)


X = noisy_low_rank(90, 8, 3, outliers=6)


@pytest.fixture(scope="module")
def fit():
    return fit_of(X)


def plots_of(content):
    for piece in content:
        if isinstance(piece, Plot):
            yield piece
        elif isinstance(piece, Row):
            yield from plots_of(piece.parts)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_plots_are_such_as_plotly_knows(k):
    pieces = contents(fit_of(X, k))
    plots = list(plots_of(pieces))
    assert len(plots) == k + 4
    for plot in plots:
        graph_objects.Figure(list(plot.data), plot.layout)  # refuses what is unknown


def test_names_are_text_wherever_they_are(fit):
    html = page("t", contents(fit))
    outside = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert "<b " not in outside
    assert "\u202e" not in html
    for text in re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL):
        figure = json.loads(text)
        assert "<b " not in json.dumps(figure)  # Plotly takes some HTML in texts
    assert "beware of" in outside


def test_sections_are_linked(fit):
    html = page("t", contents(fit))
    anchors = re.findall(r'<a href="#(\w+)">', html)
    assert anchors[:4] == ["warnings", "components", "map", "samples"]
    assert all(f'<h2 id="{anchor}">' in html for anchor in anchors)
    assert '<input type="search">' in html


@given(arrays(float, st.integers(1, 12), elements=st.floats(-1e6, 1e6)))
def test_shares_of_an_energy_add_up(contributions):
    chosen, others = contribution_shares(contributions)
    if np.abs(contributions).sum() > 0:
        assert sum(percent for _, percent in chosen) + others == 100
        assert 0 <= others <= 100
        assert all(0 < percent <= 100 for _, percent in chosen)
    else:
        assert (chosen, others) == ([], 0)


def test_shares_are_those_of_absolute_contributions(fit):
    assert contribution_shares(np.array([-6.0, 3.0, 1.0, 0.0])) == ([(0, 60), (1, 30), (2, 10)], 0)
    for row in samples_table(fit).rows[:6]:
        percents = [int(text) for text in re.findall(r"(\d+)%", row[-1].text)]
        assert sum(percents) == 100
        assert row[-1].text[0] in "↑↓"


def test_samples_are_coloured_by_a_column():
    kinds = np.array([f"k{i % 3}" for i in range(90)], dtype=object)
    fit = fit_of(X, colors=kinds)
    plot = map_plot(fit, draw_samples(fit))
    names = [trace.get("name") for trace in plot.data]
    assert names[0] == "k0"
    assert "k0, outliers" in names
    assert sum(len(trace["x"]) for trace in plot.data if trace["mode"] == "markers") == 90
    many = fit_of(X, colors=np.array([f"k{i % 30}" for i in range(90)], dtype=object))
    traces = map_plot(many, draw_samples(many)).data
    names = {trace["name"].split(",")[0] for trace in traces if "name" in trace}
    assert len(names) == MAX_CATEGORIES
    assert "others" in names


def test_parts_are_corners_of_the_map():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.eye(5), 20, axis=0)
    data = codes @ rng.gamma(0.3, size=(5, 30)) + 1e-3 * rng.random((100, 30))
    fit = fit_of(data, 5)
    corners = component_corners(fit.component_shares(np.arange(100)))
    assert_allclose(np.linalg.norm(corners, axis=1), 1.0)
    plot = map_plot(fit, np.arange(100))
    assert plot.data[-1]["text"] == [f"component {j}" for j in range(1, 6)]
    points = np.array([plot.data[0]["x"], plot.data[0]["y"]]).T
    main = fit.component_shares(np.arange(100))[~fit.outliers].argmax(axis=1)
    assert_allclose(points, corners[main], atol=0.1)


def test_parts_that_occur_together_are_neighbours():
    codes = np.zeros((60, 6))
    for pair, rows in zip([(0, 3), (1, 4), (2, 5)], np.split(np.arange(60), 3), strict=True):
        codes[np.ix_(rows, pair)] = 0.5
    corners = component_corners(codes)
    assert_allclose(np.linalg.norm(corners[:3] - corners[3:], axis=1), 1.0)  # sides of a hexagon


def test_features_without_names_are_numbered(fit):
    numbered = replace(fit, table=replace(fit.table, named=False, features=list("01234567")))
    assert numbered.feature_name(3) == "feature 3"
    assert "feature 3" in page("numbered", contents(numbered))


def test_numbers_have_a_scale_of_colours():
    values = np.linspace(0, 1, 90)
    values[3] = np.nan
    fit = fit_of(X, colors=values)
    plot = map_plot(fit, draw_samples(fit))
    graph_objects.Figure(list(plot.data), plot.layout)
    assert "coloraxis" in plot.layout
    assert {trace.get("name") for trace in plot.data} & {"missing", "missing, outliers"}
    assert '"NaN"' not in plot.html()
    values[4] = np.inf
    plot = map_plot(fit_of(X, colors=values), np.arange(90))
    assert any(trace.get("name", "").startswith("missing or infinite") for trace in plot.data)
    assert "Infinity" not in plot.html()


def test_missing_values_do_not_make_a_sample_more_outlying():
    table = X.copy()
    table[40:60, :4] = np.nan
    fit = fit_of(table)
    n_outliers = int(fit.outliers.sum())
    assert n_outliers >= 6
    assert fit.outliers[fit.order[:n_outliers]].all()
    assert_allclose(fit.weights[40:60][~fit.outliers[40:60]], 1.0)
    energies = fit.model.energies_[fit.order[n_outliers:]]
    assert (np.diff(energies) <= 0).all()
    assert "80 of 720 values are missing (11.1%)." in page("title", contents(fit))
    stored = StoredRows(SlicedReader(table))
    for data in (table, csr_array(table), stored, stored.choose([0, 7])):
        width = 4 if data.shape[1] == 8 else 1
        assert count_missing(data).tolist() == [0] * 40 + [width] * 20 + [0] * 30


def test_at_most_some_samples_are_drawn_and_outliers_among_them(fit):
    drawn = draw_samples(fit, 40)
    assert len(drawn) == len(set(drawn)) == 40
    assert fit.outliers[drawn].sum() == fit.outliers.sum()
    _, count = codes_plot(fit)
    assert count == 90


def test_outliers_are_drawn_above_their_cutoffs_and_no_other_sample():
    table = X.copy()
    table[20:30] *= 0.1  # small samples have lower cutoffs
    table[28] = table[28, ::-1]
    fit = fit_of(table)
    traces = {trace["name"]: trace for trace in energies_plot(fit).data}
    cutoffs = dict(zip(traces["cutoff"]["x"], traces["cutoff"]["y"], strict=True))
    above = {
        name: [y > cutoffs[x] for x, y in zip(trace["x"], trace["y"], strict=True)]
        for name, trace in traces.items()
    }
    assert all(above["outliers"])
    assert not any(above["inliers"])
    assert len(set(cutoffs.values())) > 1
    # The cutoff of this weighting is that of the residual of an entry.
    plot = energies_plot(fit_of(table, weighting="huber"))
    assert "cutoff" not in {trace["name"] for trace in plot.data}


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([120.0, 350.0, 900.0], ["200", "500"]),
        ([300.0, 400.0], ["300", "350", "400"]),
        ([3.0, 3.0], ["3"]),
        ([0.02, 8000.0], None),
    ],
)
def test_ticks_have_all_their_digits(values, texts):
    axis = log_axis(np.array(values))
    if texts is None:
        assert axis["dtick"] == 1  # powers of ten alone
    else:
        assert axis.get("ticktext", texts) == texts
        assert axis["type"] == ("log" if len(texts) > 1 else "linear")
    assert "D2" not in axis.values()


@pytest.mark.parametrize("k", [1, 2])
def test_a_sample_that_is_far_off_leaves_room_for_the_others_in_the_map(k):
    table = X.copy()
    table[0] *= 1e5
    plot = map_plot(fit_of(table, k), np.arange(len(table)))
    trace = next(trace for trace in plot.data if trace["name"] == "inliers")
    for name in ("x", "y"):
        is_log = plot.layout[f"{name}axis"].get("type") == "log"
        all_values = np.concatenate([trace[name] for trace in plot.data])
        scaled, values = (np.log(v) if is_log else np.array(v) for v in (all_values, trace[name]))
        assert np.ptp(np.quantile(values, [0.05, 0.95])) > 0.05 * np.ptp(scaled)


def test_spectra_are_lines():
    X = noisy_low_rank(60, 25, 2)
    fit = fit_of(X, 2, features=[f"{400 + 10 * j}" for j in range(25)])
    lines = [p for p in plots_of(contents(fit)) if "along the features" in p.description]
    assert len(lines) == 2
    assert lines[0].data[0]["x"][0] == 400


def test_parts_of_scaled_tables_are_in_units_of_their_scale(fit):
    scaled = Fit(fit.model, fit.table, fit.codes, 1.0, scale=np.arange(1.0, 9.0))
    np.testing.assert_allclose(scaled.components, fit.model.components_ * np.arange(1.0, 9.0))
    assert "units of their scale" in page("t", contents(scaled))


def test_the_curve_of_the_rank_is_shown(fit):
    selection = select_rank(X, [1, 2, 3], random_state=0, n_folds=2)
    chosen = Fit(fit.model, fit.table, fit.codes, 1.0, selection=selection)
    html = page("t", contents(chosen))
    assert "Number of components" in html
    assert "the recommended number" in html
    assert "standard error" in html


@pytest.mark.parametrize("parameters", [{"weighting": "cauchy"}, {"loss": "truncated"}])
def test_other_weightings_and_losses_have_pages(parameters):
    html = page("t", contents(fit_of(X, 2, **parameters)))
    assert ("has no cutoff" in html) == ("weighting" in parameters)
    assert ("entries without weight" in html) == ("loss" in parameters)


ERRORS = np.array([[3.0, 1.0, 1.1], [3.2, 1.1, 1.0]])


@pytest.mark.parametrize("silhouette", [None, np.array([np.nan, 0.95, 0.3])])
def test_the_curve_of_ranks_has_stability_where_it_is_known(silhouette):
    selection = RankSelection(np.array([1, 2, 3]), ERRORS, silhouette)
    text, plot = rank_curve(selection)
    assert text.html().endswith(f"{selection.reason}</p>")
    assert ("silhouette" in text.html()) == (silhouette is not None)
    assert len(plot.data) == (1 if silhouette is None else 2)
    if silhouette is not None:
        assert plot.data[1]["y"] == [None, 0.95, 0.3]
        assert "yaxis2" in plot.layout


def fit_of_parts(parts, names):
    """What a report knows of a fit, as far as its parts are concerned."""
    X = np.random.default_rng(0).random((60, len(parts))) @ parts
    model = RobustNMF(len(parts), random_state=0).fit(X)
    table = Table(X, [f"{i}" for i in range(60)], names, [])
    return Fit(model, table, model.transform(X), 1.0)


def test_features_of_parts_are_named_and_escaped():
    parts = np.array([[5.0, 1.0, 0.0, 0.2], [5.0, 0.0, 1.0, 0.2]])
    (table,) = top_features_table(fit_of_parts(parts, ["common", "<b>left</b>", "right", "small"]))
    first = {row[1].text.split(" (")[0] for row in table.rows}
    assert first == {"<b>left</b>", "right"}
    assert "<b>" not in table.html()


def test_features_of_parts_are_listed_by_how_many_times_larger_they_are():
    parts = np.array([[9.0, 2.0, 0.1, 1.0], [3.0, 0.2, 9.0, 1.0]])
    (table,) = top_features_table(fit_of_parts(parts, ["large", "rare", "other", "same"]))
    texts = [row[1].text for row in table.rows]
    assert any(text.startswith("rare (") and "), large (" in text for text in texts), texts


def test_a_single_part_and_images_have_no_such_table():
    one = fit_of_parts(np.array([[1.0, 2.0, 3.0]]), ["a", "b", "c"])
    assert top_features_table(one) == []
    two = fit_of_parts(np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), list("abcd"))
    assert len(top_features_table(two)) == 1
    assert top_features_table(replace(two, image_shape=(2, 2))) == []


def test_the_page_in_the_dark_on_a_phone_and_searched(fit, tmp_path, browser):
    path = tmp_path / "page.html"
    path.write_text(page("t", contents(fit)), encoding="utf-8")
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        complaints(browser)
        browser.get(path.as_uri())
        wait_until(browser, "return document.querySelectorAll('.plot .main-svg').length > 5")
        assert complaints(browser) == []
        color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert color == "rgb(20, 23, 26)"
        with narrow(browser):
            assert overflow(browser) <= 1
        browser.find_element("css selector", "input[type=search]").send_keys("no such sample")
        shown = (
            "return document.querySelectorAll('.search + .scroll tbody tr:not([hidden])').length"
        )
        assert browser.execute_script("return document.querySelectorAll('.search').length") == 1
        assert browser.execute_script(shown) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
