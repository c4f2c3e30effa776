"""Distinctive features of components."""

import numpy as np
import pandas as pd
import pytest

from robustnmf import ConsensusNMF, RobustNMF, top_features

PARTS = np.array(
    [
        [9.0, 3.0, 0.0, 0.0, 1.0, 0.0],
        [9.0, 0.0, 2.0, 0.5, 1.0, 0.0],
        [9.0, 0.0, 0.0, 4.0, 1.0, 0.3],
    ]
)


def known(components):
    """A model that has learned these components."""
    model = RobustNMF(len(components))
    model.components_ = components
    return model


@pytest.fixture
def model():
    return known(PARTS)


def test_features_that_all_components_have_come_last(model):
    first = [features[0].feature for features in top_features(model)]
    assert first == [1, 2, 3]
    assert all(
        f.feature != 0 or f.ratio < 1.2 for features in top_features(model) for f in features
    )


def test_sizes_of_components_do_not_matter(model):
    sized = known(PARTS * np.array([[1.0], [1e3], [1e-3]]))
    order = [[f.feature for f in features] for features in top_features(model)]
    assert [[f.feature for f in features] for features in top_features(sized)] == order


def test_units_of_all_features_do_not_matter(model):
    scaled = top_features(known(7 * PARTS))
    for features, others in zip(top_features(model), scaled, strict=True):
        assert [f.share for f in features] == pytest.approx([f.share for f in others])


def test_a_single_component_has_its_largest_entries(model):
    (features,) = top_features(known(PARTS[:1]), 2)
    assert [f.feature for f in features] == [0, 1]


def test_names_and_error_bars_are_those_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(60, 3)) @ PARTS + 0.05 * rng.random((60, 6))
    table = pd.DataFrame(X, columns=list("abcdef"))
    model = ConsensusNMF(RobustNMF(3), n_runs=5, random_state=0).fit(table)
    features = top_features(model, 1)
    assert sorted(f.name for (f,) in features) == ["b", "c", "d"]
    for i, (feature,) in enumerate(features):
        assert feature.component == i
        assert feature.value == model.components_[i, feature.feature]
        assert feature.spread == model.spread_[i, feature.feature]
    plain = top_features(RobustNMF(3, random_state=0).fit(table.to_numpy()), 1)
    assert plain[0][0].name.startswith("x")
    assert plain[0][0].spread is None


def test_bad_arguments_are_refused(model):
    with pytest.raises(ValueError, match="number of features"):
        top_features(model, 0)


def test_features_as_a_data_frame(model):
    features = top_features(model, 2)
    frame = features.to_frame()
    assert list(frame["feature"]) == [f.feature for row in features for f in row]
    assert {"component", "name", "value", "share", "ratio"} < set(frame.columns)
    assert list(top_features(known(np.ones((2, 3)))).to_frame().columns) == list(frame.columns)
