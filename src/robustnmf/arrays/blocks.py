"""Row blocks: the products a pass needs, whatever holds the rows.

A block keeps its rows as the user gave them and works in units of ``scale``, a
power of two near the largest entry of X. Dividing the small products by it, not
X itself, costs no copy of X and no rounding, and lets data of size 1e-60 or 1e+60
through the squares that NMF takes.
"""

from __future__ import annotations

from robustnmf.arrays.namespace import Array, Namespace, namespace, wide


class DenseBlock:
    """Consecutive rows of a dense X, in units of ``scale``.

    Attributes
    ----------
    sq_norms : array (rows,), float64
        Squared norm of each row.
    mass : array (rows,), float64
        How many times each row counts, once unless told. A row of zeros counts zero times:
        it says nothing about the basis, and any basis fits it exactly.
    """

    def __init__(self, rows: Array, scale: float = 1.0, mass: Array | None = None):
        self.rows = rows
        self.scale = scale
        self._sizes: dict[float, Array] = {}
        xp = self.xp
        self.sq_norms = xp.sum(self.wide_values() ** 2, axis=1)
        mass = xp.ones_like(self.sq_norms) if mass is None else mass
        self.mass = xp.where(self.sq_norms > 0, mass, 0 * mass)

    @property
    def xp(self) -> Namespace:
        """Array namespace of the rows."""
        return namespace(self.rows)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def values(self) -> Array:
        """Rows in units of scale (rows, features)."""
        return self._in_units(self.rows)

    def wide_values(self) -> Array:
        """The same in float64."""
        return self._in_units(wide(self.rows))

    def sizes(self, degree: float) -> Array:
        """Sum of the entries to some power, for every row: what energies compare with."""
        if degree == 2:
            return self.sq_norms
        if degree not in self._sizes:
            self._sizes[degree] = self._sum_of_powers(degree)
        return self._sizes[degree]

    def _sum_of_powers(self, degree: float) -> Array:
        values = self.wide_values()
        xp = self.xp
        some = xp.where(values > 0, values, xp.ones_like(values))
        return xp.sum(xp.where(values > 0, some**degree, xp.zeros_like(values)), axis=1)

    def take(self, index: Array) -> Array:
        """Chosen rows in units of scale."""
        return self._in_units(self.xp.take(self.rows, index, axis=0))

    def project(self, basis: Array) -> Array:
        """``X basis^T`` for all members as one product: (members, rows, k)."""
        xp = self.xp
        members, k, features = basis.shape
        flat = self._in_units(xp.reshape(basis, (members * k, features)))
        product = xp.reshape(self.rows @ flat.T, (len(self), members, k))
        return xp.permute_dims(product, (1, 0, 2))

    def cross(self, codes: Array) -> Array:
        """``codes^T X`` for all members as one product: (members, k, features)."""
        xp = self.xp
        members, rows, k = codes.shape
        flat = xp.reshape(xp.permute_dims(codes, (0, 2, 1)), (members * k, rows))
        return xp.reshape(self._in_units(flat @ self.rows), (members, k, self.rows.shape[1]))

    def weighted(self, codes: Array) -> Array:
        """Codes (members, rows, k), each row as often as it counts."""
        return codes * self.xp.astype(self.mass, codes.dtype)[:, None]

    def _in_units(self, x: Array) -> Array:
        return x if self.scale == 1.0 else x * (1.0 / self.scale)
