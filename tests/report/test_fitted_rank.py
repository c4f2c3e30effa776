"""The number of parts in a report, and the features that tell parts from each other."""

from dataclasses import replace

import numpy as np
import pytest

from robustnmf import RobustNMF
from robustnmf.estimators import RankSelection
from robustnmf.report.fitted import Fit
from robustnmf.report.fitted_page import rank_curve, top_features_table
from robustnmf.tables import Table

pytest.importorskip("jinja2", reason="pages need the packages of the extra cli")

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


def fit_of(parts, names):
    """What a report knows of a fit, as far as its parts are concerned."""
    X = np.random.default_rng(0).random((60, len(parts))) @ parts
    model = RobustNMF(len(parts), random_state=0).fit(X)
    table = Table(X, [f"{i}" for i in range(60)], names, [])
    return Fit(model, table, model.transform(X), 1.0)


def test_features_of_parts_are_named_and_escaped():
    parts = np.array([[5.0, 1.0, 0.0, 0.2], [5.0, 0.0, 1.0, 0.2]])
    (table,) = top_features_table(fit_of(parts, ["common", "<b>left</b>", "right", "small"]))
    first = {row[1].text.split(" (")[0] for row in table.rows}
    assert first == {"<b>left</b>", "right"}
    assert "<b>" not in table.html()


def test_a_single_part_and_images_have_no_such_table():
    one = fit_of(np.array([[1.0, 2.0, 3.0]]), ["a", "b", "c"])
    assert top_features_table(one) == []
    two = fit_of(np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), list("abcd"))
    assert len(top_features_table(two)) == 1
    assert top_features_table(replace(two, image_shape=(2, 2))) == []
