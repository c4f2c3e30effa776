"""Figure 5: scores against the number of clusters on Yale."""

from robustnmf.experiments.paper._classes import classes_figure

ITEM = classes_figure(5, "yale")
