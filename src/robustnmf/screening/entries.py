r"""Decide from which residual on an entry is bad, on a thousand rows, before the fit.

Losses with automatic cutoffs (:class:`TruncatedLoss`, :class:`HuberLoss`) need a robust standard
deviation of the residuals of every feature, and a start that bad entries have not shaped: the loss
of an entry that is far off is flat, so that a fit from a bad start keeps what it started with.

1. Marginal screen. Entries far from the median of their feature do not count at first.
2. Rising rank. A fit of a quarter of the rank leaves bad entries the largest residuals, as it has
   no room for them. Cutoffs narrow while it settles. The table that is repaired by this fit gives
   the start of the next one, of half of the rank, and that one the start at full rank.
3. Groups. Where a fit of low rank agrees with few of the entries of a row, the row is of another
   kind rather than full of bad entries: it takes part in the next start as it is. Scattered bad
   entries may look the same where they are many, and a good table may have more groups than low
   ranks have room for. So the steps are run with this rule and without it, the full rank is also
   fitted at once, and the fit with the least loss under common cutoffs is taken.
4. Decision. Bad entries are ignored only if entries that are hidden are predicted better without
   them. Plain NMF of the good entries of these rows is the start.

Entries that are usual for their feature count in full, whatever their residual: with few features,
or features that no other one predicts, good entries have large residuals, too. So an entry is bad
only if it does not fit and is unusual for its feature.

Other starts (random ones, several, fixed components) are fitted to a sample of the rows without the
entries that this fit finds bad (:func:`fit_good_entries`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robustnmf.arrays import Array, on_device_of, to_numpy, weighted_quantile, weighted_quantiles
from robustnmf.engine import Engine, InMemory, RowSample, draw_rows, split_place
from robustnmf.inits import FROM_SVD, INITS
from robustnmf.loop.encoding import encode
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Fitted, Start
from robustnmf.losses import Frobenius, ReweightedLoss, TruncatedLoss
from robustnmf.solvers import SOLVERS
from robustnmf.structures import Free
from robustnmf.weightings import Uniform
from robustnmf.weightings.trimmed import FEWEST_SAMPLES

ROWS = 1000
"""Number of rows that are drawn."""

RANKS = (0.25, 0.5, 1.0)
"""Ranks that are fitted one after the other, as shares of the requested one."""

NARROWING, FINAL_NARROWING = (8.6, 6.6, 5.4, 4.3, 3.3, 2.6, 2.2), (8.6, 6.6)
"""Cutoffs of the fits of low rank, and of the full rank, in robust standard deviations."""

FIRST_PASSES, PASSES, FINAL_PASSES = 15, 6, 40
"""Passes with fixed bad entries, with every cutoff, and with the final cutoffs."""

START_PASSES, START_TOLERANCE = 300, 1e-4
"""Most passes of a fit of good entries alone, and its tolerance: residuals that are larger than the
cutoffs would stay as they are."""

HIDDEN, HIDDEN_PASSES = 0.2, 20
"""Share of the entries that are hidden at once for the decision, and passes of a fit."""

FOLDS, MANY = 3, 50_000
"""How often entries are hidden; once in a sample of at least so many entries."""

GOLDEN = 0.618034
"""Steps of the golden ratio spread the hidden entries of a row evenly."""

CAPPED = 0.9
"""Quantile of the errors of hidden good entries that no error counts more than: a bad entry is not
predicted in either way, and costs the same."""

MARGINAL = 2.5
"""Robust standard deviations from the median of a feature beyond which entries do not count at
first."""

AGREEING = 1 / 3
"""Share of the substantial entries of a row that are good, below which it is of another kind."""

SUBSTANTIAL = 3.0
"""Robust standard deviations above zero from which an entry, or its approximation, says what kind
of row it is in."""

WITHIN_KIND = 5.0
"""Robust standard deviations above the median of the positive entries of a feature, among rows of
another kind, beyond which entries do not count in the next start."""

BAD = 6.0
"""Robust standard deviations beyond which a residual counts as that of a bad entry."""

OUTLYING, MOSTLY_BAD = 2.0, 0.6
"""Robust standard deviations that the entries of an outlier are off on average, and the share of
the largest possible loss of a row that is enough in any case."""

COVERED = 0.99
"""Share of the rows with at least as many good entries as bad ones that are not outliers, whatever
their losses."""

LEAST_SCALE, LEAST_MARGINAL_SCALE = 1.0, 0.1
"""Least robust standard deviation of a feature, of residuals and of entries, as a share of the root
mean square of all features: those that are zero in most samples have none of their own."""

SMALLEST = 1e-4
"""Least robust standard deviation, as a share of the root mean square of the entries."""

NO_CUTOFF = 1e3
"""Cutoff in units of the largest entry where samples or features are too few to judge entries."""

FENCES = 3.0
"""Quartile ranges above the good entries of a feature from which on entries are gross."""

UNUSUAL, LEAST_REACH = 0.5, 0.1
"""Quartile ranges beyond the quartiles of a feature from which on entries may be bad; and the least
distance between quartile and median of the positive entries of a rare feature, as a share of it."""

LARGE = 0.99
"""Quantile of the good values of other features that usual values of a rare feature hardly exceed:
most of its positive entries may be bad."""

FEWEST_FEATURES, FEWEST_OF_A_KIND = 3, 3
HAS_WEIGHT, GOOD = 0.1, 0.5
"""Weights above which an entry takes part in a start, and above which it is a good one."""
QUANTILE, OF_NORMAL = 0.6, 0.8416
"""Quantile of absolute residuals that robust standard deviations are read off, and what it is for
normal numbers. Up to 40% of the entries of a feature may be bad."""


@dataclass(frozen=True)
class EntryScreening:
    """Loss with cutoffs, basis (k, features) and sample that they were read off.

    In the units of the engine. ``basis`` is None where entries could not be judged, ``row_cutoff``
    is the loss beyond which a sample is an outlier.
    """

    loss: ReweightedLoss
    sample: RowSample
    basis: np.ndarray | None = None
    row_cutoff: float = np.inf


def screen_entries(engine: Engine, loss: ReweightedLoss, rank: int, seed: int) -> EntryScreening:
    """Read a start, and the cutoffs of a loss, off robust fits of some rows of an engine.

    Cutoffs that are given are kept.
    """
    sample = draw_rows(engine, ROWS)
    rows = np.asarray(sample.rows, dtype=np.float64) / engine.scale
    known = ~np.isnan(rows)
    largest = float(np.max(rows, initial=0.0, where=known))
    if engine.sample_count < FEWEST_SAMPLES or rows.shape[1] < FEWEST_FEATURES or largest == 0:
        kept = NO_CUTOFF * (largest or 1.0) if loss.has_auto else loss.cutoff
        return EntryScreening(loss.with_cutoff(kept), sample)
    table = _Table(rows, known, sample.weight, sample.key, rank, seed)
    fits = table.fit_rising_rank()
    scales = np.min([fitted.scales for fitted in fits], axis=0)
    best = min(fits, key=lambda fitted: table.truncated_loss(fitted, BAD * scales))
    return table.finish(best, loss, sample)


def fit_good_entries(
    engine: Engine, problem: Problem, reference: Array, rank: int, init: str, seeds: Sequence[int]
) -> Array:
    """Fit bases (seeds, rank, features) to a sample of the rows, bad entries left out.

    These are the entries that a robust fit, the ``reference`` (components, features), gives no
    weight. The loss of an entry that is far off is flat: from any other start a fit under the loss
    itself would stay there. Without these entries, the squared error has no such flat parts.
    """
    loss = problem.loss
    assert isinstance(loss, ReweightedLoss)
    sample = draw_rows(engine, ROWS)
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
    passes: int = START_PASSES,
) -> list[Fitted]:
    """Fit plain NMF to rows (rows, features) with NaN, from a start for every seed."""
    problem = Problem(Frobenius(), Free(), SOLVERS["hals"](), fixed=fixed)
    fill = problem.fill_value()
    engine = InMemory(rows, scale=1.0, fill=fill, sample_weight=row_weight)
    filled = engine.filled() if init in FROM_SVD else engine
    starts = [INITS[init](filled, rank, int(seed)) for seed in seeds]
    codes = np.stack([np.concatenate(blocks) for blocks, _ in starts])
    start = Start(engine.split(codes, axis=1), np.stack([basis for _, basis in starts]))
    weightings = [Uniform()] * len(starts)
    return fit(engine, problem, weightings, start, max_iter=passes, tol=START_TOLERANCE)


@dataclass(frozen=True)
class _Fit:
    """Factors of a sample, which entries are good, and deviations of its features (features,)."""

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
    """Rows of a sample (rows, features), which entries are known, and weights and keys of rows."""

    rows: np.ndarray
    known: np.ndarray
    row_weight: np.ndarray
    key: np.ndarray
    rank: int
    seed: int

    def fit_rising_rank(self) -> list[_Fit]:
        """Fit ranks up to the full one, with the rule for rows of other kinds and without it.

        Where the rule changes nothing it is left out. The last fit is of the full rank at once,
        with all entries.
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
        # A good table may have more groups than low ranks have room for.
        filled = np.where(self.known, self.rows, medians)
        fits.append(self._fit_rank(self.rank, filled, self.known, FINAL_NARROWING))
        return fits

    def _fit_higher_ranks(self, ranks: Sequence[int], fitted: _Fit, agreeing: float) -> _Fit:
        """Fit rising ranks, each from the table that the fit before has repaired."""
        for rank in ranks:
            good = self._with_other_kinds(fitted, agreeing)
            repaired = np.where(good, self.rows, fitted.approximation)
            narrowing = FINAL_NARROWING if rank == ranks[-1] else NARROWING
            fitted = self._fit_rank(rank, repaired, good, narrowing)
        return fitted

    def truncated_loss(self, fitted: _Fit, cutoffs: np.ndarray) -> float:
        """Sum squared residuals in units of cutoffs (features,), one at most."""
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
        # Given cutoffs may be so wide that bad rows would shape the basis. Without a decision the
        # fit itself goes on from here; closer to its end, rounding would decide about steps.
        passes = 0 if has_cutoff else FINAL_PASSES if decides else FIRST_PASSES
        is_mostly_bad = 2 * beyond.sum(axis=1) > self.known.sum(axis=1)
        counted = replace(self, row_weight=self.row_weight * ~is_mostly_bad)
        member = counted._run(loss, fitted.codes, fitted.basis, passes)
        good = self._good(loss, member)
        if decides:
            if not counted._predicts_better(good):
                largest = float(np.max(self.rows, where=self.known, initial=0.0))
                loss, good = TruncatedLoss(NO_CUTOFF * largest), self.known
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

    def _predicts_better(self, good: np.ndarray) -> bool:
        """Return whether hidden entries are predicted better from good ones (rows, features) alone.

        All hidden entries are judged, with a bounded error: a good one that is called bad costs
        more if it is ignored. Rows with no more known entries than components predict nothing.
        """
        if (1 - HIDDEN) * self.rows.shape[1] < self.rank + 1:
            return True
        folds = FOLDS if self.rows.size < MANY else 1
        # By the keys of rows, so that neither order nor repetition of samples matters.
        place = split_place(self.key, 0)[:, None] + GOLDEN * np.arange(self.rows.shape[1])
        fold = (place % 1.0) // HIDDEN
        errors = np.full((2, *self.rows.shape), np.nan)
        for i in range(folds):
            is_hidden = self.known & (fold == i)
            for used, of_entries in zip((self.known, good), errors, strict=True):
                member = self._fit_good(used & ~is_hidden, HIDDEN_PASSES)
                residuals = self.rows - member.codes @ member.basis
                of_entries[is_hidden] = residuals[is_hidden] ** 2
        judged = self.known & good & (fold < folds)
        cap = min(self._quantile(of_entries, judged, CAPPED) for of_entries in errors)
        from_all, from_good = np.nansum(np.minimum(errors, cap), axis=2) @ self.row_weight
        return bool(from_good < from_all)

    def _quantile(self, values: np.ndarray, chosen: np.ndarray, share: float) -> float:
        """Compute a quantile of the values of chosen entries (rows, features); zero without any."""
        weight = np.broadcast_to(self.row_weight[:, None], values.shape)[chosen]
        return weighted_quantile(values[chosen], weight, share) if weight.any() else 0.0

    def _fit_good(self, good: np.ndarray, passes: int = START_PASSES) -> Fitted:
        """Fit plain NMF to good entries (rows, features)."""
        rows, init = np.where(good, self.rows, np.nan), self._init(self.rank)
        return _fit_plain(rows, self.row_weight, self.rank, init, [self.seed], passes=passes)[0]

    def _init(self, rank: int) -> str:
        return "nndsvda" if rank <= min(self.rows.shape) else "random"

    def _row_cutoff(
        self, loss: ReweightedLoss, scales: np.ndarray, energies: np.ndarray, good: np.ndarray
    ) -> float:
        """Return the loss of a row of which every entry is ``OUTLYING`` deviations off.

        It is raised to cover the energies (rows,) of most ``good`` rows (rows,): a few gross
        entries make a row large under an unbounded loss, but not an outlier. It is at most a share
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

        From quartiles as Tukey's fences are; those of a rare feature, in which most entries are
        equal or zero, from its positive entries.
        """
        low, median, high = self._quartiles(self.rows)
        is_rare = (median <= 0) | (high <= low)
        reach = UNUSUAL * (high - low)
        # Many of the positive entries of a rare feature may be bad: their upper half is not used.
        lower, middle, _ = self._quartiles(np.where(self.rows > 0, self.rows, np.nan))
        above = (1 + 2 * UNUSUAL) * np.maximum(middle - lower, LEAST_REACH * middle)
        highest = middle + above
        if not is_rare.all():
            largest = self._quantile(self.rows, good & ~is_rare, LARGE)
            highest = np.minimum(highest, (1 + LEAST_REACH) * largest)
        return np.where(is_rare, [0.0 * middle, highest], [low - reach, high + reach])

    def _quartiles(self, rows: np.ndarray) -> list[np.ndarray]:
        """Compute quartiles and medians (features,) of rows (rows, features)."""
        return [weighted_quantiles(rows, self.row_weight, q) for q in (0.25, 0.5, 0.75)]

    def _highest(self, good: np.ndarray) -> np.ndarray:
        """Return the largest good value of every feature (features,).

        A row that is fitted badly may give weight to a gross entry, so values far beyond the
        quartiles of the positive ones do not count.
        """
        good = good & (self.row_weight > 0)[:, None]
        positive = np.where(good & (self.rows > 0), self.rows, np.nan)
        low, _, high = self._quartiles(positive)
        largest = np.max(self.rows, axis=0, initial=0.0, where=good)
        return np.where(high > low, np.minimum(largest, high + FENCES * (high - low)), largest)

    def _fit_rank(
        self, rank: int, repaired: np.ndarray, good: np.ndarray, narrowing: Sequence[float]
    ) -> _Fit:
        """Fit one rank from the start of a repaired table, while cutoffs narrow."""
        start = InMemory(repaired, sample_weight=self.row_weight)
        codes, basis = INITS[self._init(rank)](start, rank, self.seed)
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
        """Run passes under a loss; entries that are not good (rows, features) count as missing."""
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
        """Return which entries count in the next start (rows, features).

        Rows that agree with a fit in less than a share of their substantial entries are compared
        with each other instead.
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
