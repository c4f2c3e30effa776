"""Figure 1: FWRNMF against p on Yale."""

from robustnmf.experiments.paper._lines import hyperparameter_figure

ITEM = hyperparameter_figure(1, "yale", "FWRNMF")
