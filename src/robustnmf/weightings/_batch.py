"""The weightings of a batch of members, each member with its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby

from robustnmf.arrays import Array, column, largest, namespace, noise
from robustnmf.weightings._base import ObjectiveSums, Separable, Weighed, Weighting


class Batch:
    """One weighting per member; neighbours of one kind are evaluated together.

    Parameters that differ within such a group become columns, so the formulas of a
    weighting broadcast over members without knowing of them.
    """

    def __init__(self, weightings: Sequence[Weighting], like: Array):
        kinds = {w.per_entry for w in weightings}
        if len(kinds) > 1:
            raise ValueError(
                "weightings per entry and per row cannot share a batch, they read X "
                f"differently. Got {', '.join(map(repr, weightings))}; fit them apart."
            )
        self.members = tuple(weightings)
        self.per_entry = kinds.pop()
        self._like = like

    def __len__(self) -> int:
        return len(self.members)

    def to_device_of(self, like: Array) -> Batch:
        """The same batch with its parameters where another array is."""
        return self if type(like) is type(self._like) else Batch(self.members, like)

    def keep(self, members: Sequence[int]) -> Batch:
        """The batch of these members alone."""
        return Batch([self.members[i] for i in members], self._like)

    @cached_property
    def uses_row_sizes(self) -> bool:
        """Whether sizes of samples have to be known."""
        return any(w.uses_row_sizes for w in self.members)

    def weigh(self, energies: Array, sample_weight: Array, sizes: Array | None = None) -> Weighed:
        """Weights and tally of a block of energies (members, rows)."""
        parts = [w.weigh(energies[at, ...], sample_weight) for at, w in self._for_row_sizes(sizes)]
        if len(parts) == 1:
            return parts[0]
        concat = namespace(energies).concat
        return Weighed(
            concat([p.weights for p in parts]),
            concat([p.log_scale for p in parts]),
            ObjectiveSums(
                concat([p.objective_sums.shift for p in parts]),
                concat([p.objective_sums.excess for p in parts]),
                concat([p.objective_sums.count for p in parts]),
            ),
        )

    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Objective of every member (members, 1)."""
        return self._each(lambda at, w: w.value_of(objective_sums.part(at)))

    def shifted_value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Objective up to constants that make it zero for a perfect fit."""
        return self._each(lambda at, w: w.shifted_value_of(objective_sums.part(at)))

    def log_units(self, objective_sums: ObjectiveSums) -> tuple[Array, Array]:
        """What value and level are multiplied by to be a sum over samples, as logarithms."""
        return (
            self._each(lambda at, w: w.log_units(objective_sums.part(at))[0]),
            self._each(lambda at, w: w.log_units(objective_sums.part(at))[1]),
        )

    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        """What to take off ``log_scale`` to make weights the gradient of phi."""
        return self._each(lambda at, w: w.log_normaliser(objective_sums.part(at)))

    def importances(
        self, energies: Array, sample_weight: Array, sizes: Array | None = None
    ) -> Array:
        """Importance of every sample for every member (members, samples)."""
        parts = [
            w.importances(energies[at, ...], sample_weight) for at, w in self._for_row_sizes(sizes)
        ]
        return parts[0] if len(parts) == 1 else namespace(energies).concat(parts)

    def rho(self, energies: Array) -> Array:
        """Contribution of every entry (members, rows, features)."""
        return self._each(lambda at, w: _entrywise(w).rho(energies[at, ...]))

    def weight(self, energies: Array) -> Array:
        """Weight of every entry (members, rows, features)."""
        return self._each(lambda at, w: _entrywise(w).weight(energies[at, ...]))

    def squared_parts(self, data: Array, before: Array, cache: Array) -> tuple | None:
        """Data and approximation with weights of entries, in one go; None where that is no gain."""
        return self._alike and self._alike.squared_parts(data, before, cache)

    def squared_rows(self, data: Array, cache: Array, sample_weight: Array) -> tuple | None:
        """The same with weights at the approximation, and sums over rows."""
        return self._alike and self._alike.squared_rows(data, cache, sample_weight)

    @property
    def _alike(self) -> Separable | None:
        """The one weighting of all members, if weights belong to entries."""
        only = self._groups[0][1] if len(self._groups) == 1 and self.per_entry else None
        return only if isinstance(only, Separable) else None

    def _each(self, function: Callable[[slice, Weighting], Array]) -> Array:
        parts = [function(at, w) for at, w in self._groups]
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts)

    def _for_row_sizes(self, sizes: Array | None) -> list[tuple[slice, Weighting]]:
        """The groups, for rows of these sizes."""
        if sizes is None:
            return self._groups
        return [(at, w.for_row_sizes(sizes)) for at, w in self._groups]

    @cached_property
    def _groups(self) -> list[tuple[slice, Weighting]]:
        """Runs of members of one kind, each as one weighting with column parameters."""
        groups = []
        start = 0
        for _, run in groupby(self.members, key=type):
            alike = list(run)
            groups.append((slice(start, start + len(alike)), self._stacked(alike)))
            start += len(alike)
        return groups

    def _stacked(self, alike: list[Weighting]) -> Weighting:
        xp = namespace(self._like)
        parameters = {}
        for name in alike[0].get_params():
            values = [getattr(w, name) for w in alike]
            if self.per_entry:  # beyond rounding and range, a cutoff is as good as their limit
                values = [min(max(v, noise(self._like)), largest(self._like)) for v in values]
            if len(set(values)) == 1:
                parameters[name] = values[0]
            elif self.per_entry:
                parameters[name] = column(values, self._like, self._like.dtype, ndim=3)
            else:  # energies of rows are float64 throughout
                parameters[name] = column(values, self._like, xp.float64, ndim=2)
        return type(alike[0])(**parameters)


def _entrywise(weighting: Weighting) -> Separable:
    """The weighting as one that has a say over single entries."""
    assert isinstance(weighting, Separable)
    return weighting
