"""Where blocks live. An engine has one verb, ``sweep``: visit all blocks, merge."""

from robustnmf.engine.memory import InMemory

__all__ = ["InMemory"]
