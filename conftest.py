"""What is collected: modules that need an extra are left out where it is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("dask") else ["src/robustnmf/engine/clustered.py"]
