"""
Outliers and the reasons
========================

:class:`robustnmf.RobustNMFDetector` is an outlier detector with the scikit-learn API. It learns
components from the majority of the samples. Samples that these components describe badly are
outliers. Here we shuffle the measurements of 40 of the 569 samples of the breast cancer data, so
that every single value is still plausible.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from robustnmf import RobustNMFDetector
from robustnmf.displays import plot_explanation

data = load_breast_cancer()
X = data.data / data.data.max(axis=0)
rng = np.random.default_rng(0)
bad = np.zeros(len(X), dtype=bool)
bad[rng.choice(len(X), 40, replace=False)] = True
X[bad] = rng.permuted(X[bad], axis=1)

# %%
# You do not need to know the number of outliers: with ``contamination="auto"``, samples with a
# negative score are outliers.

detector = RobustNMFDetector(5, random_state=0).fit(X)
outliers = detector.predict(X) == -1
print(f"{outliers.sum()} found, {np.sum(outliers & bad)} of them among the 40 shuffled samples")

# %%
# We compare the detector with two detectors of scikit-learn by the area under the ROC curve (1 is
# perfect).

scores = {
    "RobustNMFDetector": -detector.score_samples(X),
    "IsolationForest": -IsolationForest(random_state=0).fit(X).score_samples(X),
    "LocalOutlierFactor": -LocalOutlierFactor().fit(X).negative_outlier_factor_,
}
figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
for name, score in scores.items():
    RocCurveDisplay.from_predictions(bad, score, name=name, ax=ax)
    print(f"{name:20s}{roc_auc_score(bad, score):.3f}")
ax.set(aspect="auto", xlim=(-0.01, 0.3), xlabel="share of other samples marked as outliers")
ax.set_ylabel("share of shuffled samples found")

# %%
# Why is the most unusual sample an outlier? The picture shows its residual for each feature.

worst = int(np.argmin(detector.score_samples(X)))
plot_explanation(detector, X, worst, feature_names=data.feature_names)
plt.show()
