"""
In a pipeline with a grid search
================================

Estimators of robustnmf follow the scikit-learn API. Here codes are features for a
classifier, the number of parts and the weighting are chosen by cross-validation, and the training
samples are corrupted (the test samples are not). Test samples have no part in the choice.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from robustnmf import RobustNMF
from robustnmf.corruptions import spoil
from robustnmf.exceptions import OutlierWarning

# Bad samples that repeat each other are warned of; here they are meant to be there.
warnings.filterwarnings("ignore", category=OutlierWarning)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
X_train, _ = spoil(X_train, 0.3, ["noise", "repeated"], (8, 8), seed=0)

# %%
pipeline = make_pipeline(
    RobustNMF(init="nndsvda", tol=1e-3, random_state=0),
    StandardScaler(),
    LogisticRegression(max_iter=500),
)
grid = {
    "robustnmf__n_components": [5, 10, 20],
    "robustnmf__weighting": ["uniform", "entropy", "trimmed"],
}
search = GridSearchCV(pipeline, grid, cv=3).fit(X_train, y_train)
print("chosen:", search.best_params_)

# %%
# Every candidate by cross-validation on the training samples, spoiled ones among them: the test
# samples have no part in the choice. Robust weights help where parts are few; with twenty, the
# weighting hardly matters, and equal weights may be chosen.

results = pd.DataFrame(search.cv_results_["params"])
results["score"] = search.cv_results_["mean_test_score"]
table = results.pivot(
    index="robustnmf__n_components", columns="robustnmf__weighting", values="score"
)
print(table.round(3))
ax = table.plot.bar(rot=0, figsize=(7, 3.5), ylim=(0.4, 0.8))
ax.set(xlabel="parts", ylabel="accuracy in cross-validation")
ax.figure.tight_layout()

# %%
# The test samples are used once, for the pipeline that was chosen.

print(f"accuracy on clean test images: {search.score(X_test, y_test):.3f}")

# %%
# Outputs have column names, by scikit-learn's ``set_output``.

named = RobustNMF(5, random_state=0).set_output(transform="pandas")
codes = named.fit_transform(pd.DataFrame(np.asarray(X), columns=load_digits().feature_names))
print(codes.head(3).round(2))
plt.show()
