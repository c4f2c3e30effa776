"""Figure 6: scores against the number of clusters on GTFD."""

from robustnmf.experiments.paper._classes import classes_figure

ITEM = classes_figure(6, "gtfd")
