"""Figure 3: scores against the noise level on GTFD."""

from robustnmf.experiments.paper._noise import noise_figure

ITEM = noise_figure(3, "gtfd")
