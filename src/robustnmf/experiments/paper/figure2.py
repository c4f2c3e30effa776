"""Figure 2: EWRNMF against gamma on WDBC."""

from robustnmf.experiments.paper._lines import hyperparameter_figure

ITEM = hyperparameter_figure(2, "wdbc", "EWRNMF")
