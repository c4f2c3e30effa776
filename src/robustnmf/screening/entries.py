r"""Find wrong entries on a thousand rows, before the fit: cutoffs of residuals and a start.

Losses with automatic cutoffs (:class:`TruncatedLoss`, :class:`HuberLoss`) need a robust standard
deviation of the residuals of every feature, and a start that does not describe wrong entries: the
loss is constant for large residuals, so a fit from a bad start would not leave it.

1. Marginal screen. Entries far from the median of their feature are ignored at first.
2. Increasing rank. A fit with a quarter of the components cannot describe wrong entries, so they
   have the largest residuals. Its cutoffs decrease step by step. The table that it repairs is the
   start of a fit with half of the components, and this gives the start of the full fit.
3. Groups. If few entries of a row agree with a fit of low rank, the row is of another kind (a
   cluster), and all its entries are used in the next start. Rows with many wrong entries can look
   the same. So the steps run with this rule and without it, and the fit with the smallest loss for
   common cutoffs wins.
4. Decision. There are two other sets of wrong entries: those that fits of the entries inside
   Tukey's fences do not predict, and those with large residuals after passes with Huber's loss,
   which returns to small clusters that the steps have lost. Wrong entries are ignored only if
   hidden entries are predicted clearly better without them. The start is plain NMF of the good
   entries of these rows.

Entries that are usual for their feature always have full weight. With few features, or features
that no other feature predicts, good entries have large residuals, too. So an entry is wrong only if
it does not fit and is unusual for its feature. In this module, wrong entries are called bad.

Other starts (random, several, fixed components) are fitted to a sample of the rows without the bad
entries of this fit (:func:`fit_good_entries`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robustnmf.arrays import (
    Array,
    Block,
    first_of_equal,
    on_device_of,
    to_numpy,
    weighted_quantile,
    weighted_quantiles,
)
from robustnmf.engine import Engine, InMemory, RowSample, draw_rows, run_fits, split_place
from robustnmf.inits import FROM_SVD, INITS
from robustnmf.loop.encoding import encode
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Fitted, Start
from robustnmf.losses import Frobenius, HuberLoss, ReweightedLoss, TruncatedLoss
from robustnmf.screening.decision import GAIN
from robustnmf.solvers import CHUNK_NUMBERS, SOLVERS, nonnegative_least_squares
from robustnmf.structures import Free
from robustnmf.weightings import Uniform
from robustnmf.weightings.trimmed import FEWEST_SAMPLES

ROWS = 1000
"""Number of rows that are drawn."""

RANKS = (0.25, 0.5, 1.0)
"""Ranks that are fitted one after the other, as shares of the requested one."""

NARROWING, FINAL_NARROWING = (8.6, 6.6, 5.4, 4.3, 3.3, 2.6, 2.2), (8.6, 6.6)
"""Cutoffs of the fits of low rank, and of the full rank, in robust standard deviations."""

FIRST_PASSES, PASSES = 15, 6
"""Numbers of passes with fixed bad entries or with the final cutoffs, and with other cutoffs."""

START_PASSES, START_TOLERANCE = 300, 1e-4
"""Maximum number of passes of a fit of good entries, and its tolerance. It must converge, because
residuals above the cutoffs would not change later."""

FOLDS, FOLDS_OF_MANY, MANY = 5, 2, 50_000
"""Number of folds of the decision, each of which hides as many entries; and the number for rows
with at least ``MANY`` entries."""

FEW_PASSES = 10
"""Passes of the fits without hidden entries, and of the fit with Huber's loss."""

GOLDEN = 0.618034
"""Steps of the golden ratio spread the hidden entries of a row evenly."""

CAPPED = 0.9
"""Errors of hidden entries are capped at this quantile of the errors of good entries: no fit can
predict bad entries."""

INNER_FENCES, MISSED = 1.5, 3.0
"""Interquartile ranges beyond the quartiles of a feature outside of which entries are first
ignored, and robust standard deviations of hidden residuals beyond which an entry is then bad."""

MARGINAL = 2.5
"""Robust standard deviations from the median of a feature beyond which entries are ignored at
first."""

AGREEING = 1 / 3
"""A row is of another kind if less than this share of its substantial entries are good."""

SUBSTANTIAL = 3.0
"""An entry is substantial if it or its approximation is this many robust standard deviations above
zero."""

WITHIN_KIND = 5.0
"""In rows of another kind, entries are ignored in the next start if they are this many robust
standard deviations above the median of the positive entries of their feature."""

BAD = 6.0
"""Robust standard deviations beyond which an entry is bad."""

OUTLYING, MOSTLY_BAD = 2.0, 0.6
"""A row is an outlier if its residuals are this many robust standard deviations on average, or if
its loss is this share of the largest possible loss."""

COVERED = 0.99
"""Of the rows with at least as many good entries as bad ones, this share are not outliers."""

LEAST_SCALE, LEAST_MARGINAL_SCALE = 1.0, 0.1
"""Minimum robust standard deviation of the residuals and of the entries of a feature, as a share of
the root mean square over all features; features that are zero in most samples need it."""

SMALLEST = 1e-4
"""Minimum robust standard deviation, as a share of the root mean square of the entries."""

NO_CUTOFF = 1e3
"""Cutoff, as a multiple of the largest entry, if there are too few samples or features."""

FENCES = 3.0
"""Interquartile ranges above the upper quartile of a feature beyond which entries are gross."""

UNUSUAL, LEAST_REACH = 0.5, 0.1
"""Interquartile ranges beyond the quartiles of a feature outside of which entries can be bad; and
the minimum distance between quartile and median of the positive entries of a rare feature, relative
to the median."""

LARGE = 0.99
"""Quantile of the good values of other features that bounds the usual values of a rare feature:
most of its positive entries can be bad, unless they are equal (a feature of zeros and ones)."""

FEWEST_FEATURES, FEWEST_OF_A_KIND = 3, 3
HAS_WEIGHT, GOOD = 0.1, 0.5
"""Weights above which an entry is used in a start, and above which it is good."""
QUANTILE, OF_NORMAL = 0.6, 0.8416
"""Quantile of absolute residuals for robust standard deviations, and its value for a standard
normal distribution. Up to 40% of the entries of a feature can be bad."""


@dataclass(frozen=True)
class EntryScreening:
    """Loss with cutoffs, the sample of rows, and basis (k, features), in the units of the engine.

    ``basis`` is None if there were too few samples or features. A sample with a loss above
    ``row_cutoff`` is an outlier.
    """

    loss: ReweightedLoss
    sample: RowSample
    basis: np.ndarray | None = None
    row_cutoff: float = np.inf


def screen_entries(engine: Engine, loss: ReweightedLoss, rank: int) -> EntryScreening:
    """Compute a start, and the cutoffs of a loss, from robust fits of some rows of an engine.

    Cutoffs from the user are kept.
    """
    sample, _ = draw_rows(engine, ROWS, distinct=True).without_idle()
    rows = np.asarray(sample.rows, dtype=np.float64) / engine.scale
    known = ~np.isnan(rows)
    largest = float(np.max(rows, initial=0.0, where=known))
    if engine.sample_count < FEWEST_SAMPLES or rows.shape[1] < FEWEST_FEATURES or largest == 0:
        kept = NO_CUTOFF * (largest or 1.0) if loss.has_auto else loss.cutoff
        return EntryScreening(loss.with_cutoff(kept), sample)
    table = _Table(rows, known, sample.weight, sample.key, rank)
    fits = table.fit_rising_rank()
    scales = np.min([fitted.scales for fitted in fits], axis=0)
    best = min(fits, key=lambda fitted: table.truncated_loss(fitted, BAD * scales))
    return table.finish(best, loss, sample)


def fit_good_entries(
    engine: Engine, problem: Problem, reference: Array, rank: int, init: str, seeds: Sequence[int]
) -> Array:
    """Fit bases (seeds, rank, features) to a sample of the rows without bad entries.

    Entries are bad if they have no weight with the basis ``reference`` (components, features).
    """
    loss = problem.loss
    assert isinstance(loss, ReweightedLoss)
    sample, _ = draw_rows(engine, ROWS, distinct=True).without_idle()
    rows = np.asarray(sample.rows, dtype=np.float64) / engine.scale
    fill = problem.fill_value()
    drawn = InMemory(rows, scale=1.0, fill=fill, sample_weight=sample.weight)
    reference = to_numpy(reference).astype(np.float64)
    codes, _ = encode(drawn, replace(problem, fixed=None), Uniform(), reference)
    weights = loss.entry_weights(rows, codes @ reference)
    fixed = None if problem.fixed is None else to_numpy(problem.fixed).astype(np.float64)
    good = np.where(weights > HAS_WEIGHT, rows, np.nan)
    members = _fit_plain(good, sample.weight, rank, init, seeds, fixed)
    bases = np.stack([member.basis for member in members])
    return on_device_of(engine.like, bases, engine.like.dtype)


def _fit_plain(
    rows: np.ndarray,
    row_weight: np.ndarray,
    rank: int,
    init: str,
    seeds: Sequence[int],
    fixed: np.ndarray | None = None,
) -> list[Fitted]:
    """Fit plain NMF to rows (rows, features) with NaN, from a start for every seed."""
    problem = Problem(Frobenius(), Free(), SOLVERS["hals"](), fixed=fixed)
    fill = problem.fill_value()
    engine = InMemory(rows, scale=1.0, fill=fill, sample_weight=row_weight)
    starts = [_start(engine, rank, init, int(seed)) for seed in seeds]
    codes, basis = (np.stack(parts) for parts in zip(*starts, strict=True))
    start = Start(engine.split(codes, axis=1), basis)
    weightings = [Uniform()] * len(starts)
    return fit(engine, problem, weightings, start, max_iter=START_PASSES, tol=START_TOLERANCE)


def _start(engine: InMemory, rank: int, init: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute a start: codes (rows, k) and basis (k, features)."""
    codes, basis = INITS[init](engine.filled() if init in FROM_SVD else engine, rank, seed)
    return np.concatenate(codes), basis


class _SquaresOfMasks(TruncatedLoss):
    """Squared error of the entries of a mask for each member (members, rows, features)."""

    def __init__(self, masks: np.ndarray):
        super().__init__(np.inf)
        self.masks = masks

    def weighted_residuals(self, block: Block, approximation: Array) -> tuple[Array, Array]:
        residuals = np.where(self.masks, block.values() - approximation, 0.0)
        return residuals, block.row_sums(residuals**2)


@dataclass(frozen=True)
class _Fit:
    """Factors of the rows, good entries, and robust deviations of the features (features,)."""

    codes: np.ndarray
    basis: np.ndarray
    good: np.ndarray
    scales: np.ndarray

    @property
    def approximation(self) -> np.ndarray:
        """Product of the factors (rows, features)."""
        return self.codes @ self.basis


@dataclass(frozen=True)
class _Table:
    """Rows of a sample (rows, features), known entries, and weights and keys of the rows."""

    rows: np.ndarray
    known: np.ndarray
    row_weight: np.ndarray
    key: np.ndarray
    rank: int

    def fit_rising_rank(self) -> list[_Fit]:
        """Fit increasing ranks, without the rule for rows of another kind and with it.

        The fits with the rule are skipped if it changes nothing.
        """
        medians = weighted_quantiles(self.rows, self.row_weight)
        scales = self._scales(self.rows - medians, LEAST_MARGINAL_SCALE)
        good = self.known & (np.abs(self.rows - medians) <= MARGINAL * scales)
        repaired = np.where(good, self.rows, np.fmin(medians, self.rows))
        repaired = np.where(self.known, repaired, medians)
        ranks = sorted({max(1, round(self.rank * share)) for share in RANKS})
        first = self._fit_rank(
            ranks[0], repaired, good, NARROWING if len(ranks) > 1 else FINAL_NARROWING
        )
        fits = [self._fit_higher_ranks(ranks[1:], first, 0.0)]
        if not np.array_equal(self._with_other_kinds(first, AGREEING), first.good):
            fits.append(self._fit_higher_ranks(ranks[1:], first, AGREEING))
        return fits

    def _fit_higher_ranks(self, ranks: Sequence[int], fitted: _Fit, agreeing: float) -> _Fit:
        """Fit increasing ranks, each from the table that the previous fit has repaired."""
        for rank in ranks:
            good = self._with_other_kinds(fitted, agreeing)
            repaired = np.where(good, self.rows, fitted.approximation)
            narrowing = FINAL_NARROWING if rank == ranks[-1] else NARROWING
            fitted = self._fit_rank(rank, repaired, good, narrowing)
        return fitted

    def truncated_loss(self, fitted: _Fit, cutoffs: np.ndarray) -> float:
        """Sum squared residuals in units of cutoffs (features,), each capped at one."""
        residuals = (self.rows - fitted.approximation) / cutoffs
        capped = np.minimum(residuals**2, 1.0, where=self.known, out=np.zeros_like(residuals))
        return float(self.row_weight @ capped.sum(axis=1))

    def finish(self, fitted: _Fit, loss: ReweightedLoss, sample: RowSample) -> EntryScreening:
        """Set the cutoffs of the loss by the share of bad entries, and fit with them.

        Deviations are those of the larger entries of each feature: noise often grows with them.
        """
        residuals = self.rows - fitted.approximation
        above = fitted.approximation >= weighted_quantiles(fitted.approximation, self.row_weight)
        scales = self._scales(np.where(above, residuals, np.nan), LEAST_SCALE)
        scales = np.maximum(scales, fitted.scales)
        beyond = self.known & (np.abs(residuals) > BAD * scales)
        bad_share = float(self.row_weight @ beyond.sum(axis=1))
        bad_share /= float(self.row_weight @ self.known.sum(axis=1))
        has_cutoff = not loss.has_auto
        loss = loss.with_cutoff(loss.cutoff if has_cutoff else loss.deviations(bad_share) * scales)
        decides = loss.spares_usual and not has_cutoff
        if decides:
            loss.usual = self._usual(fitted.good)
        # Cutoffs of the user can be so large that bad rows would influence the basis. More passes
        # would end so close to the minimum that rounding decides whether steps are accepted.
        passes = 0 if has_cutoff else FIRST_PASSES
        is_mostly_bad = 2 * beyond.sum(axis=1) > self.known.sum(axis=1)
        counted = replace(self, row_weight=self.row_weight * ~is_mostly_bad)
        member = counted._run(loss, fitted.codes, fitted.basis, passes)
        good = self._good(loss, member)
        if decides:
            huber = HuberLoss(HuberLoss.deviations(bad_share) * scales)
            after = counted._run(huber, fitted.codes, fitted.basis, FEW_PASSES)
            loss, good = counted._choose(loss, good, self.rows - after.codes @ after.basis)
            member = counted._fit_good(good)
            member = counted._run(loss, member.codes, member.basis, 1)
            good = self._good(loss, member)
        if not has_cutoff or loss.highest is None:
            loss.highest = self._highest(good)
        row_cutoff = self._row_cutoff(loss, scales, member.energies, ~is_mostly_bad)
        return EntryScreening(loss, sample, member.basis, row_cutoff)

    def _good(self, loss: ReweightedLoss, member: Fitted) -> np.ndarray:
        """Return which entries are good under a loss (rows, features)."""
        return self.known & (loss.entry_weights(self.rows, member.codes @ member.basis) > GOOD)

    def _choose(
        self, loss: ReweightedLoss, good: np.ndarray, residuals: np.ndarray
    ) -> tuple[ReweightedLoss, np.ndarray]:
        """Return the loss whose good entries (rows, features) predict hidden entries clearly best.

        There are four candidates: all entries are good; the given ones are; those that are usual or
        have small ``residuals`` (rows, features); and those that are usual or agree with fits that
        use neither them nor entries outside Tukey's inner fences. All hidden entries are used, with
        capped errors, so that ignoring good entries increases the error. Rows with no more known
        entries than components predict nothing.
        """
        folds = FOLDS if self.rows.size < MANY else FOLDS_OF_MANY
        if (1 - 1 / folds) * self.rows.shape[1] < self.rank + 1:
            return loss, good
        low, _, high = self._quartiles(self.rows)
        is_inside = np.abs(self.rows - (low + high) / 2) <= (0.5 + INNER_FENCES) * (high - low)
        is_usual = (self.rows >= loss.usual[0]) & (self.rows <= loss.usual[1])

        def small(residuals: np.ndarray, deviations: float) -> tuple[ReweightedLoss, np.ndarray]:
            cutoffs = deviations * self._scales(residuals, LEAST_SCALE)
            return loss.with_cutoff(cutoffs), is_usual | (np.abs(residuals) <= cutoffs)

        (hidden,) = self._hidden_residuals([self.known & (is_usual | is_inside)], folds)
        largest = float(np.max(self.rows, where=self.known, initial=0.0))
        nothing = TruncatedLoss(NO_CUTOFF * largest), self.known
        candidates = [nothing, (loss, good), small(hidden, MISSED), small(residuals, BAD)]
        masks = [self.known & used for _, used in candidates]
        first, which = first_of_equal(masks)
        squares = np.square(self._hidden_residuals([masks[i] for i in first], folds))[which]
        undoubted = np.logical_and.reduce(masks) & is_inside
        cap = min(self._quantile(of_entries, undoubted, CAPPED) for of_entries in squares)
        errors = np.nansum(np.minimum(squares, cap), axis=2) @ self.row_weight
        best = int(np.argmin(errors))
        best = best if errors[best] <= (1.0 - GAIN) * errors[0] else 0
        return candidates[best][0], masks[best]

    def _hidden_residuals(self, masks: Sequence[np.ndarray], folds: int) -> np.ndarray:
        """Compute residuals (masks, rows, features) of fits of the entries of each mask.

        Every entry is hidden from the fit that predicts it. Small tables are fitted as one batch.
        """
        # By the keys of rows, so that the order and repetition of samples do not matter.
        place = split_place(self.key, 0)[:, None] + GOLDEN * np.arange(self.rows.shape[1])
        fold = np.floor(folds * (place % 1.0))
        hidden = [(i, self.known & (fold == j)) for i in range(len(masks)) for j in range(folds)]
        step = max(1, CHUNK_NUMBERS // (len(self.rows) * max(self.rows.shape[1], self.rank**2)))
        batches = [hidden[at : at + step] for at in range(0, len(hidden), step)]

        def predict(batch: list[tuple[int, np.ndarray]]) -> list[np.ndarray]:
            used = np.array([masks[i] & ~is_hidden for i, is_hidden in batch])
            codes, basis = self._fit_masks(used)
            return [(c @ b)[mask] for c, b, (_, mask) in zip(codes, basis, batch, strict=True)]

        residuals = np.full((len(masks), *self.rows.shape), np.nan)
        for batch, found in zip(
            batches, run_fits([partial(predict, batch) for batch in batches]), strict=True
        ):
            for (i, is_hidden), predicted in zip(batch, found, strict=True):
                residuals[i][is_hidden] = self.rows[is_hidden] - predicted
        return residuals

    def _fit_masks(self, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fit plain NMF to the entries of each mask (masks, rows, features), in a few passes.

        Returns codes (masks, rows, k), the best ones for the basis, and basis (masks, k, features).
        """
        rows, weight, k = np.where(self.known, self.rows, 0.0), self.row_weight, self.rank
        starts = [
            _start(
                InMemory(np.where(mask, rows, np.nan), scale=1.0, fill=0.0, sample_weight=weight),
                k, self._init(k), 0,
            )
            for mask in masks
        ]  # fmt: skip
        codes, basis = (np.stack(parts) for parts in zip(*starts, strict=True))
        values = masks * rows
        codes *= values.any(axis=2, keepdims=True)  # rows of zeros have no weight in a basis
        engine = InMemory(rows, scale=1.0, sample_weight=weight, block_rows=len(rows))
        problem = Problem(_SquaresOfMasks(masks), Free(), SOLVERS["hals"]())
        members = fit(
            engine, problem, [Uniform()] * len(masks), Start([codes], basis),
            max_iter=FEW_PASSES, tol=0.0,
            callback=lambda *_: False,  # all members stay in one batch, as their masks do
        )  # fmt: skip
        basis = np.stack([member.basis for member in members])
        pairs = (basis[:, :, None] * basis[:, None]).reshape(len(masks), k * k, -1)
        linear, grams = values @ basis.mT, masks.astype(np.float64) @ pairs.mT
        linear, grams = linear.reshape(-1, k), grams.reshape(-1, k, k)
        best = nonnegative_least_squares(linear, grams, guess=np.ones_like(linear))
        return best.reshape(codes.shape), basis

    def _quantile(self, values: np.ndarray, chosen: np.ndarray, share: float) -> float:
        """Compute a quantile of the values of chosen entries (rows, features); zero without any."""
        weight = np.broadcast_to(self.row_weight[:, None], values.shape)[chosen]
        return weighted_quantile(values[chosen], weight, share) if weight.any() else 0.0

    def _fit_good(self, good: np.ndarray) -> Fitted:
        """Fit plain NMF to good entries (rows, features)."""
        rows, init = np.where(good, self.rows, np.nan), self._init(self.rank)
        return _fit_plain(rows, self.row_weight, self.rank, init, [0])[0]

    def _init(self, rank: int) -> str:
        return "nndsvda" if rank <= min(self.rows.shape) else "random"

    def _row_cutoff(
        self, loss: ReweightedLoss, scales: np.ndarray, energies: np.ndarray, good: np.ndarray
    ) -> float:
        """Return the loss of an outlying row: all residuals are ``OUTLYING`` deviations.

        It is raised to cover the energies (rows,) of most ``good`` rows (rows,), because a few
        gross entries increase an unbounded loss, but do not make an outlier. It is at most a share
        ``MOSTLY_BAD`` of the largest loss of a row, if that is bounded.
        """
        squares = (OUTLYING * scales) ** 2
        level, largest = (loss.rho(r2, loss.cutoff).sum() for r2 in (squares, squares + np.inf))
        if self.row_weight[good].any():
            covering = weighted_quantile(energies[good], self.row_weight[good], COVERED)
            level = max(level, covering)
        return float(min(level, MOSTLY_BAD * largest) if loss.usual is None else level)

    def _usual(self, good: np.ndarray) -> np.ndarray:
        """Return the smallest and the largest usual value of every feature (2, features).

        They come from quartiles, like Tukey's fences. For a rare feature, in which most entries are
        equal or zero, they come from the positive entries.
        """
        low, median, high = self._quartiles(self.rows)
        is_rare = (median <= 0) | (high <= low)
        reach = UNUSUAL * (high - low)
        # Many of the positive entries of a rare feature can be bad: their upper half is not used.
        lower, middle, _ = self._quartiles(np.where(self.rows > 0, self.rows, np.nan))
        above = (1 + 2 * UNUSUAL) * np.maximum(middle - lower, LEAST_REACH * middle)
        highest = middle + above
        if not is_rare.all():
            largest = self._quantile(self.rows, good & ~is_rare, LARGE)
            of_others = np.minimum(highest, (1 + LEAST_REACH) * largest)
            highest = np.where(middle > lower, of_others, highest)
        return np.where(is_rare, [0.0 * middle, highest], [low - reach, high + reach])

    def _quartiles(self, rows: np.ndarray) -> list[np.ndarray]:
        """Compute quartiles and medians (features,) of rows (rows, features)."""
        return [weighted_quantiles(rows, self.row_weight, q) for q in (0.25, 0.5, 0.75)]

    def _highest(self, good: np.ndarray) -> np.ndarray:
        """Return the largest good value of every feature (features,).

        Gross entries can have weight in a row that is fitted badly, so the values are bounded by
        the quartiles of the positive entries.
        """
        good = good & (self.row_weight > 0)[:, None]
        positive = np.where(good & (self.rows > 0), self.rows, np.nan)
        low, _, high = self._quartiles(positive)
        largest = np.max(self.rows, axis=0, initial=0.0, where=good)
        return np.where(high > low, np.minimum(largest, high + FENCES * (high - low)), largest)

    def _fit_rank(
        self, rank: int, repaired: np.ndarray, good: np.ndarray, narrowing: Sequence[float]
    ) -> _Fit:
        """Fit one rank from the start of a repaired table, with decreasing cutoffs."""
        start = InMemory(repaired, scale=1.0, sample_weight=self.row_weight)
        codes, basis = INITS[self._init(rank)](start, rank, 0)
        member = self._run(Frobenius(), np.concatenate(codes), basis, FIRST_PASSES, good)
        for deviations in narrowing:
            scales = self._scales(self.rows - member.codes @ member.basis, LEAST_SCALE)
            loss = TruncatedLoss(deviations * scales)
            member = self._run(loss, member.codes, member.basis, PASSES)
        scales = self._scales(self.rows - member.codes @ member.basis, LEAST_SCALE)
        return _Fit(member.codes, member.basis, self._good(loss, member), scales)

    def _run(
        self,
        loss: Frobenius | ReweightedLoss,
        codes: np.ndarray,
        basis: np.ndarray,
        passes: int,
        good: np.ndarray | None = None,
    ) -> Fitted:
        """Run passes with a loss; entries that are not ``good`` (rows, features) are missing."""
        rows = self.rows if good is None else np.where(good, self.rows, np.nan)
        problem = Problem(loss, Free(), SOLVERS["hals"]())
        fill = problem.fill_value()
        engine = InMemory(rows, scale=1.0, fill=fill, sample_weight=self.row_weight)
        start = Start(engine.split(codes[None], axis=1), basis[None].copy())
        return fit(engine, problem, [Uniform()], start, max_iter=passes, tol=0.0)[0]

    def _scales(self, residuals: np.ndarray, least: float) -> np.ndarray:
        """Compute robust standard deviations (features,) of residuals (rows, features)."""
        scales = weighted_quantiles(np.abs(residuals), self.row_weight, QUANTILE) / OF_NORMAL
        typical = float(np.sqrt(np.mean(scales**2)))
        smallest = SMALLEST * float(np.sqrt(np.mean(self.rows**2, where=self.known)))
        return np.maximum(scales, max(least * typical, smallest))

    def _with_other_kinds(self, fitted: _Fit, agreeing: float) -> np.ndarray:
        """Return which entries are used in the next start (rows, features).

        Rows of another kind agree with the fit in less than a share of their substantial entries.
        Their entries are compared with each other instead.
        """
        good = fitted.good.copy()
        size = np.fmax(self.rows, fitted.approximation)
        substantial = self.known & (size > SUBSTANTIAL * fitted.scales)
        agree = (substantial & good).sum(axis=1)
        of_another_kind = agree < agreeing * substantial.sum(axis=1)
        if self.row_weight[of_another_kind].sum() < FEWEST_OF_A_KIND:
            return good
        others = self.rows[of_another_kind]
        positive = np.where(others > 0, others, np.nan)
        weight = self.row_weight[of_another_kind]
        medians = weighted_quantiles(positive, weight)
        deviations = weighted_quantiles(np.abs(positive - medians), weight, QUANTILE) / OF_NORMAL
        highest = np.where(deviations > 0, medians + WITHIN_KIND * deviations, np.inf)
        good[of_another_kind] = others <= highest
        return good
