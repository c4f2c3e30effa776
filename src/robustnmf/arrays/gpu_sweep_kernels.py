"""Triton kernels for the codes of rows: coordinate sweeps, masked systems, energies.

:mod:`robustnmf.arrays.gpu_sweeps` calls them. Arguments are as in ``gpu_kernels``.
"""

# Triton reads annotations itself: no postponed ones here.
import triton
import triton.language as tl


@triton.jit
def sweep(A, L, G, S, out, n, k, sweeps, by_member, by_row,
           K: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip
    """Run coordinate sweeps on a tile of rows, which stays in registers."""
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

    What the other coordinates contribute to the slopes of a block is one product on tensor cores,
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
    """Compute ``norm + rest`` of every row, or ``(unit x - a C)^2`` where that cancels.

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
