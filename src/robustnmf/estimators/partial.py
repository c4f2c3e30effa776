"""Learning from minibatches (``partial_fit``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from robustnmf.estimators.encoding import EncodingMixin
from robustnmf.exceptions import warn
from robustnmf.fitting import FitSettings, check_source, check_weights
from robustnmf.fitting.stream import (
    FIXED_PARAMETERS,
    Stream,
    begin_stream,
    check_complete,
    fixed_parameters,
)
from robustnmf.sources import library_of, source_for
from robustnmf.structures import Free


def _streams(model: Any) -> bool:
    """Return True if the sums of this model add up over minibatches; else raise an error."""
    loss, weighting, structure = model._spec()
    if not loss.quadratic or weighting.per_entry or type(structure) is not Free:
        raise AttributeError(
            f"partial_fit of {type(model).__name__} needs the squared error, weights of samples "
            f"and free structure, because only their sums add up over minibatches; got {loss!r}, "
            f"{weighting!r}, {structure!r}."
        )
    return True


def _check_same_model(model: Any, settings: FitSettings, stream: Stream) -> None:
    """Refuse parameters that changed since the first minibatch and would have no effect."""
    count, given = model.components_.shape[0], settings.n_components
    weighting, before = settings.spec.weighting, stream.requested_weighting.rescaled(model._unit)
    values = zip(FIXED_PARAMETERS, fixed_parameters(settings), stream.parameters, strict=False)
    changed = [value for value in values if not np.array_equal(*value[1:])]
    if given not in (None, "auto", count):
        changed.append(("n_components", given, count))
    if type(weighting) is not type(before) or weighting.get_params() != before.get_params():
        changed.append(("weighting", weighting, before))
    for name, now, first in changed:
        raise ValueError(
            f"{name} is {now!r:.200}, but the minibatches so far were fitted with {first!r:.200}, "
            "and their sums cannot be converted. Set it back, or clone the estimator and start "
            "over."
        )


class PartialFit(EncodingMixin):
    """The method ``partial_fit`` of estimators."""

    n_steps_: int
    n_samples_seen_: int
    _settings: Callable[[], FitSettings]  # of the estimator that this is mixed into

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Update the model with one more minibatch.

        The first minibatch is fitted as by ``fit``, with at most 100 iterations. Each further
        minibatch updates the components with weighted sums over all minibatches so far, in which
        earlier minibatches are discounted by ``forget_factor``. Automatic weights are estimated
        from the reconstruction errors of all minibatches. The components are zero until the first
        minibatch with a positive value. A call after ``fit`` starts over.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
            Minibatch without missing values. Use a few hundred samples or more to estimate stable
            components.
        y : ignored
        W, H : array-like, optional
            Start for the first minibatch, with ``init="custom"``, as in ``fit``; later ignored.
        sample_weight : array-like (n_samples,), optional
            Weight of each sample, as in ``fit``.

        Returns
        -------
        self : the fitted estimator

        Examples
        --------
        >>> import numpy as np
        >>> from robustnmf import RobustNMF
        >>> rng = np.random.default_rng(0)
        >>> components = rng.gamma(1.0, size=(3, 8))
        >>> model = RobustNMF(3, random_state=0)
        >>> for _ in range(5):
        ...     model = model.partial_fit(rng.gamma(1.0, size=(200, 3)) @ components)
        >>> model.n_steps_, model.n_samples_seen_
        (5, 1000)
        """
        settings = self._settings()
        if settings.chooses_rank:
            raise ValueError(
                "partial_fit needs a number of components, but n_components is 'auto': a minibatch "
                "is too small to choose it. Set a number; select_rank helps you to choose it."
            )
        source = source_for(X, settings.name)
        steps, seen = getattr(self, "n_steps_", 0), getattr(self, "n_samples_seen_", 0)
        given = library_of(source.X)
        if steps and given != (before := library_of(self.components_)):
            raise TypeError(
                f"X is an array of {given}, but earlier minibatches were arrays of "
                f"{before}. Convert X: all minibatches need the same library and device."
            )
        stream: Stream | None = getattr(self, "_stream", None)
        if stream is None:  # there were only zeros so far, if anything
            if steps:
                source.check_features(self)
            source = check_source(settings, source)
            plan, first, stream = begin_stream(settings, source, W, H, sample_weight)
            engine, unit = plan.engine, plan.unit
            basis, weighting = first.basis, first.weighting
            learned = plan.encoder(basis, weighting).attributes()
        else:
            source = self._checked(source)
            engine = self._engine(source, check_weights(sample_weight, source.shape[0]))
            check_complete(engine)
            basis = source.like(self.components_) / self._scale
            unit = self._unit
            _check_same_model(self, settings, stream)
            weighting = self.weighting_.rescaled(1.0 / unit)
            learned = {}
        if stream.statistics is None and engine.mean() == 0:
            # Zeros give neither a start nor units; components that are zero would stay zero.
            warn(
                "X has no positive values. The components are zero until the first minibatch with "
                "a positive value.",
                UserWarning,
            )
        else:
            with engine.thread_pool():
                stream, basis, weighting = stream.after(
                    engine, basis, weighting, settings.forget_factor
                )
            learned |= {
                "components_": basis * engine.scale,
                "weighting_": weighting.rescaled(unit),
                "_stream": stream,
            }
        learned |= {"n_steps_": steps + 1, "n_samples_seen_": seen + engine.shape[0]}
        # Nothing is set before this point: a failed step leaves the estimator as it was.
        if not steps:
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)  # of an earlier fit
            validate_data(self, source.header, skip_check_array=True, reset=True)
        self.__dict__.update(learned)
        return self
