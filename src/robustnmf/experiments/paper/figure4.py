"""Figure 4: scores against the noise level on Balance."""

from robustnmf.experiments.paper._noise import noise_figure

ITEM = noise_figure(4, "balance")
