"""Triton kernels, the programs of thread blocks. :mod:`robustnmf.arrays.kernels.gpu` calls them.

Arrays are passed as pointers with lengths and strides; ``K`` is the number of columns
padded to a power of two, and everything beyond an edge is masked.
"""

# Triton reads annotations itself, so they must not be postponed here.
import triton
import triton.language as tl


@triton.jit
def nearest(x):
    """Round to the nearest TF32 number."""
    bits = x.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def product(x, high, low, total, one, SPLIT: tl.constexpr):
    """Return ``total + x (high + low)``.

    The factor ``one`` prevents the compiler from summing within tensor cores, which loses digits.
    """
    rounded = nearest(x)
    if SPLIT:
        part = tl.dot(x - rounded, high, input_precision="tf32")
        part = tl.dot(rounded, low, part, input_precision="tf32")
        part = tl.dot(rounded, high, part, input_precision="tf32")
        total += one * part
    else:
        total = tl.dot(rounded, high, total, input_precision="tf32")
    return total


@triton.jit
def projections(X, high, low, n, m, k, stride, rows, columns, one, K: tl.constexpr,
                 ROWS: tl.constexpr, STEP: tl.constexpr, SPLIT: tl.constexpr):  # fmt: skip
    """Compute ``X C^T`` for a tile of rows."""
    steps = tl.arange(0, STEP)
    total = tl.zeros((ROWS, K), dtype=tl.float32)
    x_at = X + rows[:, None] * stride + steps[None, :]
    c_at = columns[None, :] * m + steps[:, None]
    here, used = (rows < n)[:, None], (columns < k)[None, :]
    for at in range(0, m, STEP):
        inside = at + steps < m
        x = tl.load(x_at + at, mask=here & inside[None, :], other=0.0)
        c = tl.load(high + c_at + at, mask=used & inside[:, None], other=0.0)
        d = c
        if SPLIT:
            d = tl.load(low + c_at + at, mask=used & inside[:, None], other=0.0)
        total = product(x, c, d, total, one, SPLIT)
    return total


@triton.jit
def project(X, high, low, out, n, m_units, k, stride_units, one,
             K: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
             UNIT: tl.constexpr, SPLIT: tl.constexpr):  # fmt: skip
    """Compute ``out = X C^T``; lengths are in units, from which the compiler derives alignment."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = tl.arange(0, K)
    m, stride = m_units * UNIT, stride_units * UNIT
    total = projections(X, high, low, n, m, k, stride, rows, columns, one, K, ROWS, STEP, SPLIT)
    inside = (rows < n)[:, None] & (columns < k)[None, :]
    tl.store(out + rows[:, None] * k + columns[None, :], total, mask=inside)


@triton.jit
def project_and_multiply(X, high, low, A, G, out, rest, n, m_units, k_units, stride_units,
                         least, one, K: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
                         UNIT: tl.constexpr, K_UNIT: tl.constexpr,
                         SPLIT: tl.constexpr):  # fmt: skip
    """Compute ``out = A (X C^T) / (A G)``, and ``rest`` of it as in ``quadratic``."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = tl.arange(0, K)
    m, k, stride = m_units * UNIT, k_units * K_UNIT, stride_units * UNIT
    seen = projections(X, high, low, n, m, k, stride, rows, columns, one, K, ROWS, STEP, SPLIT)
    inside = (rows < n)[:, None] & (columns < k)[None, :]
    place = rows[:, None] * k + columns[None, :]
    gram = tl.load(G + columns[:, None] * K + columns[None, :])
    a = tl.load(A + place, mask=inside, other=0.0)
    below = tl.dot(a, gram, input_precision="tf32x3")
    moved = a * seen / tl.maximum(below, least)
    moved = tl.where(moved < least, 0.0, moved)
    tl.store(out + place, moved, mask=inside)
    product = tl.dot(moved, gram, input_precision="tf32x3")
    terms = moved.to(tl.float64) * (product.to(tl.float64) - 2.0 * seen.to(tl.float64))
    tl.store(rest + rows, tl.sum(terms, axis=1), mask=rows < n)


@triton.jit
def cross(high, low, X, out, n, m, k, stride, each, one, K: tl.constexpr,
           ROWS: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr):  # fmt: skip
    """Compute ``out[part] = A X`` for A (k, n), over a part of the rows and a tile of features."""
    features = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    part = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, K)
    used, known = columns < k, features < m
    total = tl.zeros((WIDE, K), dtype=tl.float32)
    for at in range(0, each, ROWS):
        rows = part * each + at + tl.arange(0, ROWS)
        here = rows < n
        a_at = rows[:, None] + columns[None, :] * n
        a = tl.load(high + a_at, mask=used[None, :] & here[:, None], other=0.0)
        d = a
        if SPLIT:
            d = tl.load(low + a_at, mask=used[None, :] & here[:, None], other=0.0)
        x_at = X + rows[:, None] * stride + features[None, :]
        x = tl.load(x_at, mask=here[:, None] & known[None, :], other=0.0)
        total = product(tl.trans(x), a, d, total, one, SPLIT)
    place = out + (part * k + columns)[None, :] * m + features[:, None]
    tl.store(place, total, mask=used[None, :] & known[:, None])


@triton.jit
def turn(A, W, high, low, n, k, by_member, by_row,
          K: tl.constexpr, ROWS: tl.constexpr, SPLIT: tl.constexpr):  # fmt: skip
    """Transpose weighted rows, split into TF32 numbers."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    member = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, K)
    here, used = rows < n, columns < k
    w = tl.load(W + member * n + rows, mask=here, other=0.0)
    a_at = A + member * by_member + rows[:, None] * by_row + columns[None, :]
    a = w[:, None] * tl.load(a_at, mask=here[:, None] & used[None, :], other=0.0)
    a = tl.trans(a)
    rounded = nearest(a)
    place = (member * k + columns)[:, None] * n + rows[None, :]
    tl.store(high + place, rounded, mask=used[:, None] & here[None, :])
    if SPLIT:
        tl.store(low + place, nearest(a - rounded), mask=used[:, None] & here[None, :])


@triton.jit
def quadratic(A, P, L, out, n, k, by_member, by_row, K: tl.constexpr, ROWS: tl.constexpr):
    """Compute ``a P^T - 2 l a^T`` of every row, with ``P = A G``, summed in float64."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    member = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, K)
    inside = (rows < n)[:, None] & (columns < k)[None, :]
    place = member * by_member + rows[:, None] * by_row + columns[None, :]
    a = tl.load(A + place, mask=inside, other=0.0).to(tl.float64)
    product = tl.load(P + place, mask=inside, other=0.0).to(tl.float64)
    linear = tl.load(L + place, mask=inside, other=0.0).to(tl.float64)
    total = tl.sum(a * (product - 2.0 * linear), axis=1)
    tl.store(out + member * n + rows, total, mask=rows < n)


@triton.jit
def huber_parts(X, B, S, C, one, two, table, BLOCK: tl.constexpr):
    """Multiply X and S by Huber's weights at B; every member has tables B and S and a cutoff."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < table
    member = tl.program_id(1).to(tl.int64)
    cutoff = tl.load(C + member)
    x = tl.load(X + at, mask=here, other=0.0)
    left = tl.abs(x - tl.load(B + member * table + at, mask=here, other=0.0))
    weight = cutoff / tl.maximum(left, cutoff)
    seen = tl.load(S + member * table + at, mask=here, other=0.0)
    tl.store(one + member * table + at, weight * x, mask=here)
    tl.store(two + member * table + at, weight * seen, mask=here)


@triton.jit
def huber_rows(X, S, C, M, one, two, value, loss, weights, n, m, BLOCK: tl.constexpr):
    """Multiply X and S by Huber's weights at S and row weights; sum rho, loss, weights of rows."""
    row = tl.program_id(0).to(tl.int64)
    member = tl.program_id(1).to(tl.int64)
    cutoff = tl.load(C + member)
    row_weight = tl.load(M + row)
    start = (member * n + row) * m
    sum_value = tl.zeros((BLOCK,), dtype=tl.float64)
    sum_loss = tl.zeros((BLOCK,), dtype=tl.float64)
    sum_weight = tl.zeros((BLOCK,), dtype=tl.float64)
    for at in range(0, m, BLOCK):
        places = at + tl.arange(0, BLOCK)
        here = places < m
        x = tl.load(X + row * m + places, mask=here, other=0.0)
        seen = tl.load(S + start + places, mask=here, other=0.0)
        left = tl.abs(x - seen)
        weight = row_weight * (cutoff / tl.maximum(left, cutoff))
        capped = tl.minimum(left, cutoff)
        sum_value += (capped * (2.0 * left - capped)).to(tl.float64)
        sum_loss += (left * left).to(tl.float64)
        sum_weight += tl.where(here, weight, 0.0).to(tl.float64)
        tl.store(one + start + places, weight * x, mask=here)
        tl.store(two + start + places, weight * seen, mask=here)
    tl.store(value + member * n + row, tl.sum(sum_value))
    tl.store(loss + member * n + row, tl.sum(sum_loss))
    tl.store(weights + member * n + row, tl.sum(sum_weight))


@triton.jit
def sweep(A, L, G, S, out, n, k, sweeps, by_member, by_row,
           K: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip
    """Run coordinate sweeps on a tile of rows, which remains in registers."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    member = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, K)
    inside = (rows < n)[:, None] & (columns < k)[None, :]
    place = member * by_member + rows[:, None] * by_row + columns[None, :]
    a = tl.load(A + place, mask=inside, other=0.0)
    linear = tl.load(L + place, mask=inside, other=0.0)
    for _ in range(sweeps):
        for j in range(0, k):
            chosen = (columns == j)[None, :]
            gram = tl.load(G + (member * k + j) * k + columns, mask=columns < k, other=0.0)
            slope = tl.sum(tl.where(chosen, linear, 0.0) - a * gram[None, :], axis=1)
            step = tl.load(S + member * k + j)
            # The column is changed in place, without extracting it from the tile.
            a = tl.where(chosen, tl.maximum(a + (slope * step)[:, None], 0.0), a)
    tl.store(out + place, a, mask=inside)


@triton.jit
def sweep_by_blocks(codes, L, G, S, n, k, sweeps, by_member, by_row, K: tl.constexpr,
                    ROWS: tl.constexpr, WIDTH: tl.constexpr):  # fmt: skip
    """Run coordinate sweeps on a tile of rows in place, a block of coordinates at a time.

    The contribution of other coordinates to the slopes of a block is one product on tensor cores,
    so that single coordinates only loop over their own block. G (K, K) and the steps S (K,) are
    zero beyond k.
    """
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    member = tl.program_id(1).to(tl.int64)
    columns, places = tl.arange(0, K), tl.arange(0, WIDTH)
    here = (rows < n)[:, None]
    row_at = member * by_member + rows[:, None] * by_row
    all_at = row_at + columns[None, :]
    used = here & (columns < k)[None, :]
    G += member * K * K
    S += member * K
    for _ in range(sweeps):
        for b in range(0, k, WIDTH):
            inside = here & (b + places < k)[None, :]
            own_at = row_at + (b + places)[None, :]
            a = tl.load(codes + all_at, mask=used, other=0.0)
            own = tl.load(codes + own_at, mask=inside, other=0.0)
            linear = tl.load(L + own_at, mask=inside, other=0.0)
            others = (columns < b) | (columns >= b + WIDTH)
            gram = tl.load(G + columns[:, None] * K + (b + places)[None, :])
            gram = tl.where(others[:, None], gram, 0.0)
            linear -= tl.dot(a, gram, input_precision="tf32x3")
            for i in range(WIDTH):
                chosen = (places == i)[None, :]
                row = tl.load(G + (b + i) * K + b + places)
                slope = tl.sum(tl.where(chosen, linear, 0.0) - own * row[None, :], axis=1)
                step = slope * tl.load(S + b + i)
                # The column is changed in place, without extracting it from the tile.
                own = tl.where(chosen, tl.maximum(own + step[:, None], 0.0), own)
            tl.store(codes + own_at, own, mask=inside)
            tl.debug_barrier()  # other threads read these codes next


@triton.jit
def masked_solve(R, M, G, out, n, k, steps, K: tl.constexpr, ROWS: tl.constexpr):
    """Solve ``x G = r`` on a mask M by conjugate gradients, a tile of rows in registers.

    G (K, K) is zero beyond k.
    """
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = tl.arange(0, K)
    inside = (rows < n)[:, None] & (columns < k)[None, :]
    place = rows[:, None] * k + columns[None, :]
    mask = tl.load(M + place, mask=inside, other=0) != 0
    rest = tl.where(mask, tl.load(R + place, mask=inside, other=0.0), 0.0)
    gram = tl.load(G + columns[:, None] * K + columns[None, :])
    x = tl.zeros((ROWS, K), dtype=tl.float32)
    direction, square = rest, tl.sum(rest * rest, axis=1)
    for _ in range(steps):
        image = tl.where(mask, tl.dot(direction, gram, input_precision="tf32x3"), 0.0)
        curvature = tl.sum(direction * image, axis=1)
        length = tl.where(curvature > 0.0, square / curvature, 0.0)[:, None]
        x += length * direction
        rest -= length * image
        after = tl.sum(rest * rest, axis=1)
        growth = tl.where(square > 0.0, after / square, 0.0)[:, None]
        direction = rest + growth * direction
        square = after
    tl.store(out + place, x, mask=inside)


@triton.jit
def energies(X, norms, rest, A, C, out, n, m_units, k, stride_units, by_member, by_row, unit,
             doubtful, least, K: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
             UNIT: tl.constexpr):  # fmt: skip
    """Compute ``norm + rest`` of every row, or ``(unit x - a C)^2`` if that cancels.

    Tiles of rows in which nothing cancels do not read X.
    """
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    member = tl.program_id(1).to(tl.int64)
    here = rows < n
    norm = tl.load(norms + rows, mask=here, other=0.0)
    energy = norm + tl.load(rest + member * n + rows, mask=here, other=0.0)
    cancels = energy < doubtful * norm
    if tl.max(cancels.to(tl.int32), axis=0) > 0:
        m, stride = m_units * UNIT, stride_units * UNIT
        columns, steps = tl.arange(0, K), tl.arange(0, STEP)
        used = columns < k
        a_at = A + member * by_member + rows[:, None] * by_row + columns[None, :]
        a = tl.load(a_at, mask=here[:, None] & used[None, :], other=0.0)
        total = tl.zeros((ROWS,), dtype=tl.float64)
        for at in range(0, m, STEP):
            known = at + steps < m
            c_at = C + (member * k + columns)[:, None] * m + (at + steps)[None, :]
            c = tl.load(c_at, mask=used[:, None] & known[None, :], other=0.0)
            x_at = X + rows[:, None] * stride + (at + steps)[None, :]
            x = tl.load(x_at, mask=here[:, None] & known[None, :], other=0.0)
            gap = unit * x - tl.dot(a, c, input_precision="tf32x3")
            total += tl.sum(gap * gap, axis=1).to(tl.float64)
        energy = tl.where(cancels, total, energy)
    tl.store(out + member * n + rows, tl.maximum(energy, least * norm), mask=here)
