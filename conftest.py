"""What is collected: modules that need an extra are left out where it is not installed."""

from importlib.util import find_spec

NEEDS = {
    "dask": "src/robustnmf/engine/dask.py",
    "triton": "src/robustnmf/arrays/gpu_kernels.py",
}
collect_ignore = [path for extra, path in NEEDS.items() if find_spec(extra) is None]
if find_spec("matplotlib") is None:
    collect_ignore_glob = ["docs/guide/*.md"]
