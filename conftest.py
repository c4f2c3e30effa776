"""What is collected: modules that need an extra are left out where it is not installed."""

from importlib.util import find_spec

NEEDS = {
    "src/robustnmf/anndata/programs.py": "anndata",
    "src/robustnmf/engine/dask.py": "dask",
    "src/robustnmf/arrays/kernels/cuda.py": "torch",
    "src/robustnmf/arrays/kernels/gpu.py": "torch",
    "src/robustnmf/arrays/kernels/gpu_kernels.py": "triton",
}
collect_ignore = [path for path, extra in NEEDS.items() if find_spec(extra) is None]
if find_spec("matplotlib") is None:
    collect_ignore_glob = ["docs/guide/*.md"]
