"""Batches of weightings, one for each member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from robustnmf.arrays import Array, EntryLoop, column, largest, namespace, noise
from robustnmf.weightings._base import BlockWeights, ObjectiveSums, Weighting


class Batch:
    """One weighting per member; consecutive members of one type are evaluated together.

    Parameters that differ within such a group become columns (members, 1), over which the
    formulas of a weighting broadcast.
    """

    def __init__(self, weightings: Sequence[Weighting], like: Array):
        kinds = {w.per_entry for w in weightings}
        if len(kinds) > 1:
            raise ValueError(
                "weightings per entry and per row cannot share a batch, because they read X "
                f"differently. Got {', '.join(map(repr, weightings))}; fit them separately."
            )
        self.members = tuple(weightings)
        self.per_entry = kinds.pop()
        self._like = like

    def __len__(self) -> int:
        return len(self.members)

    def to_device_of(self, like: Array) -> Batch:
        """Return the batch with its parameters on the device of another array."""
        return self if type(like) is type(self._like) else Batch(self.members, like)

    def keep(self, members: Sequence[int]) -> Batch:
        """Return the batch of the members with these indices."""
        return Batch([self.members[i] for i in members], self._like)

    @cached_property
    def uses_row_sizes(self) -> bool:
        """Whether the weighting of any member depends on the sizes of samples."""
        return any(w.uses_row_sizes for w in self.members)

    def weigh(
        self, energies: Array, sample_weight: Array, sizes: Array | None = None
    ) -> BlockWeights:
        """Compute weights and objective sums of a block of energies (members, rows)."""
        parts = [w.weigh(energies[at, ...], sample_weight) for at, w in self._for_row_sizes(sizes)]
        if len(parts) == 1:
            return parts[0]
        concat = namespace(energies).concat
        weights, log_scales, sums = zip(*parts, strict=True)
        columns = zip(*(vars(of_group).values() for of_group in sums), strict=True)
        objective_sums = ObjectiveSums(*map(concat, columns))
        return BlockWeights(concat(weights), concat(log_scales), objective_sums)

    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Compute the objective of every member (members, 1)."""
        return self._each(lambda at, w: w.value_of(objective_sums.part(at)))

    def shifted_value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Compute the objective minus a constant (members, 1), zero for a perfect fit."""
        return self._each(lambda at, w: w.shifted_value_of(objective_sums.part(at)))

    def log_units(self, objective_sums: ObjectiveSums) -> tuple[Array, Array]:
        """Return the logs of the factors (members, 1) that turn both objectives into sums."""
        return (
            self._each(lambda at, w: w.log_units(objective_sums.part(at))[0]),
            self._each(lambda at, w: w.log_units(objective_sums.part(at))[1]),
        )

    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        """Compute the number (members, 1) to subtract from ``log_scale`` to get phi's gradient."""
        return self._each(lambda at, w: w.log_normaliser(objective_sums.part(at)))

    def importances(
        self, energies: Array, sample_weight: Array, sizes: Array | None = None
    ) -> Array:
        """Compute the importance of every sample for every member (members, samples)."""
        return self._each(lambda at, w: w.importances(energies[at, ...], sample_weight), sizes)

    def rho(self, energies: Array) -> Array:
        """Compute the contribution of every entry (members, rows, features) to the objective."""
        return self._each(lambda at, w: w.rho(energies[at, ...]))

    def weight(self, energies: Array) -> Array:
        """Compute the weight of every entry (members, rows, features)."""
        return self._each(lambda at, w: w.weight(energies[at, ...]))

    @cached_property
    def entry_loop(self) -> EntryLoop | None:
        """The compiled loop for weights of entries, if all members can use the same one."""
        _, first = self._groups[0]
        if len(self._groups) > 1 or first.entry_loop is None:
            return None
        return EntryLoop(first.entry_loop, first.get_params())

    def _each(self, function: Callable[[slice, Any], Array], sizes: Array | None = None) -> Array:
        """Apply a function to every group of members and concatenate the results."""
        parts = [function(at, w) for at, w in self._for_row_sizes(sizes)]
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts)

    def _for_row_sizes(self, sizes: Array | None) -> list[tuple[slice, Weighting]]:
        """Return the groups of members with weightings for rows of these sizes (rows,)."""
        if sizes is None:
            return self._groups
        return [(at, w.for_row_sizes(sizes)) for at, w in self._groups]

    @cached_property
    def _groups(self) -> list[tuple[slice, Weighting]]:
        """Runs of members of one type, each as one weighting with column parameters."""
        groups = []
        start = 0
        for _, run in groupby(self.members, key=type):
            same_type = list(run)
            groups.append((slice(start, start + len(same_type)), self._stack(same_type)))
            start += len(same_type)
        return groups

    def _stack(self, same_type: list[Weighting]) -> Weighting:
        """Merge weightings of one type into one whose parameters are columns (members, 1)."""
        if len(same_type) == 1 and not self.per_entry:
            return same_type[0]
        # Energies of rows are float64 throughout.
        dtype = self._like.dtype if self.per_entry else namespace(self._like).float64
        parameters = {}
        for name in same_type[0].get_params():
            values = [getattr(w, name) for w in same_type]
            if self.per_entry:  # outside the range or precision of the dtype, use its limits
                values = [min(max(v, noise(self._like)), largest(self._like)) for v in values]
            if len(set(values)) == 1:
                parameters[name] = values[0]
            else:
                ndim = 3 if self.per_entry else 2
                parameters[name] = column(values, self._like, dtype, ndim=ndim)
        return type(same_type[0])(**parameters)
