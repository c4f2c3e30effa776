"""Learning from minibatches, for estimators whose sums over samples add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from robustnmf.estimators.encoding import EncodingMixin
from robustnmf.exceptions import warn
from robustnmf.fitting import FitSettings, check_source, check_weights
from robustnmf.fitting.stream import Stream, begin_stream, check_complete
from robustnmf.sources import Source, library_of, source_for
from robustnmf.structures import Free
from robustnmf.weightings import Weighting


def _streams(model: Any) -> bool:
    """Whether minibatches of what this estimator learns add up."""
    loss, weighting, structure = model._parts()
    if not loss.quadratic or weighting.per_entry or type(structure) is not Free:
        raise AttributeError(
            f"partial_fit of {type(model).__name__} needs the squared error, weights of samples "
            f"and free structure, whose sums over minibatches add up; got {loss!r}, {weighting!r}, "
            f"{structure!r}."
        )
    return True


def _check_same_library(source: Source, components: Any) -> None:
    """Refuse a minibatch of another library, or on another device, than those before."""
    before = library_of(components)
    if source.library != before:
        raise TypeError(
            f"X is an array of {source.library}, but the minibatches before it were arrays of "
            f"{before}. Convert X: all minibatches of a stream need the same library and device."
        )


def _check_same_model(model: Any, weighting: Weighting, before: Weighting) -> None:
    """Refuse parameters that were changed since the first minibatch and would have no effect.

    ``weighting`` is that of the parameters, ``before`` that of the first minibatch.
    """
    count, given = model.components_.shape[0], model.n_components
    if given not in (None, "auto", count):
        name, now, first = "n_components", given, count
    elif type(weighting) is not type(before) or weighting.get_params() != before.get_params():
        name, now, first = "weighting", weighting, before
    else:
        return
    raise ValueError(
        f"{name} is {now!r}, but the minibatches so far were fitted with {first!r}, and "
        "their sums cannot be converted. Set it back, or clone the estimator and start over."
    )


class PartialFit(EncodingMixin):
    """What an estimator needs to learn from one minibatch after the other."""

    n_steps_: int
    n_samples_seen_: int
    _settings: Callable[[], FitSettings]  # of the estimator that this is mixed into

    @available_if(_streams)
    def partial_fit(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Learn from one more minibatch.

        The first one is fitted as ``fit`` would, in at most ``FIRST_PASSES`` iterations; those
        that follow each move the basis towards what all of them say, the earlier the less
        (``forget_factor``). Automatic weights follow a histogram of the energies of all of them.
        A minibatch of zeros has nothing to start from: components are zero until the first
        minibatch with a positive value. After a ``fit`` it starts over.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
            Minibatch; some hundred samples and more tell parts from accidents. Without missing
            values.
        y : ignored
        W, H : array-like, optional
            Start of the first minibatch, with ``init="custom"``, as in ``fit``; not used by those
            that follow.
        sample_weight : array-like (n_samples,), optional
            How many times each sample counts.

        Returns
        -------
        self : the fitted estimator

        Examples
        --------
        >>> import numpy as np
        >>> from robustnmf import RobustNMF
        >>> rng = np.random.default_rng(0)
        >>> parts = rng.gamma(1.0, size=(3, 8))
        >>> model = RobustNMF(3, random_state=0)
        >>> for _ in range(5):
        ...     model = model.partial_fit(rng.gamma(1.0, size=(200, 3)) @ parts)
        >>> model.n_steps_, model.n_samples_seen_
        (5, 1000)
        """
        settings = self._settings()
        if settings.chooses_rank:
            raise ValueError(
                "partial_fit needs a number of components, but n_components is 'auto': a minibatch "
                "is too little to choose it from. Give a number; select_rank compares some."
            )
        source = source_for(X, settings.name)
        stream: Stream | None = getattr(self, "_stream", None)
        # Minibatches so far that held zeros and nothing else.
        empty = getattr(self, "n_steps_", 0) if stream is None else 0
        if empty:
            _check_same_library(source, self.components_)
            source.check_features(self)
        if stream is None:
            source = check_source(settings, source)
            plan, first, stream = begin_stream(settings, source, W, H, sample_weight)
            engine, unit = plan.engine, plan.unit
            basis, weighting = first.basis, first.weighting
            learned = {
                **plan.encoder(basis, weighting).attributes(),
                "n_steps_": empty,
                "n_samples_seen_": self.n_samples_seen_ if empty else 0,
            }
        else:
            _check_same_library(source, self.components_)
            source = self._checked(source)
            engine = self._engine(source, check_weights(sample_weight, source.shape[0]))
            check_complete(engine)
            basis = source.like(self.components_) / self._scale
            unit = self._unit
            before = stream.requested_weighting.rescaled(unit)
            _check_same_model(self, settings.parts.weighting, before)
            weighting = self.weighting_.rescaled(1.0 / unit)
            learned = {"n_steps_": self.n_steps_, "n_samples_seen_": self.n_samples_seen_}
        if stream.statistics is None and engine.mean() == 0:
            # Neither a start nor the units of what is to come: components that are zero would
            # stay so.
            warn(
                "X holds no positive value to start from; the components are zero until a "
                "minibatch does.",
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
        learned["n_steps_"] += 1
        learned["n_samples_seen_"] += engine.shape[0]
        # Nothing is set before this point: a failed step leaves the estimator as it was.
        if learned["n_steps_"] == 1:
            self._forget()
            validate_data(self, source.header, skip_check_array=True, reset=True)
        self.__dict__.update(learned)
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit has learned and this one may not have."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
