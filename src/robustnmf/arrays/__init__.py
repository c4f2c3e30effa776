"""All code that depends on the array library: namespaces, row blocks, compiled loops."""

from robustnmf.arrays.blocks import (
    Block,
    DenseBlock,
    MaskedBlock,
    SparseBlock,
    as_dense,
    row_slice,
)
from robustnmf.arrays.cuda_graphs import repeat_on_device
from robustnmf.arrays.histogram import (
    Bulk,
    EnergyHistogram,
    LogHistogram,
    energy_counts,
    excess_counts,
    node_counts,
    sample_count,
)
from robustnmf.arrays.kernels import EntryLoop, Kernels, active_components, kernels_for
from robustnmf.arrays.namespace import (
    WORTH_A_DEVICE,
    Array,
    Namespace,
    arange_like,
    as_float64,
    at_least,
    at_most,
    by_rows,
    column,
    device_of,
    energy_rounding,
    eps,
    fill_masked,
    first_of_equal,
    floored,
    from_gpu,
    has_holes,
    host_dtype,
    identity_like,
    is_foreign,
    largest,
    log_gap,
    masked_scatter,
    namespace,
    noise,
    on_device_of,
    positive,
    quotient,
    safe_log,
    smallest,
    to_device_of,
    to_numpy,
    weighted_quantile,
    weighted_quantiles,
)
from robustnmf.arrays.residuals import recompute_cancelled
