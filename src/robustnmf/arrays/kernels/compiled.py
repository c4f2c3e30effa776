"""Compile loops with numba, and keep them in files that no other process can mix up.

Numba numbers the files of the signatures of a function, and an index says which file is whose. If
two processes compile different signatures at once, or one ends between writing the index and the
file, the index names the wrong file, and numba does not notice: a loop for contiguous arrays then
reads a strided one as if it were contiguous (numba/numba#4807, #10128). Here the name of a file
says what is in it, and there is no index.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # one wrapper less to compile
    "_nrt": False,  # loops do not allocate, so numba need not compile its memory manager
}
"""Options of all loops."""

SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()
"""Digest of all loops: numba looks only at the file of a loop, not at what that imports."""


class _NamedFiles(IndexDataCacheFile):
    """Files whose names tell sources, options, the version of numba and the signature apart."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any):
        super().__init__(cache_path, filename_base, source_stamp)
        self._prefix = f"{filename_base}.{_digest((self._version, source_stamp, SOURCES, OPTIONS))}"
        self._obsolete = f"{filename_base}.*.nbc"

    def load(self, key: Any) -> Any:
        try:
            return self._load_data(self._name(key))
        except OSError:
            return None

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._name(key), data)
        for path in Path(self._cache_path).glob(self._obsolete):
            if not path.name.startswith(self._prefix):
                path.unlink(missing_ok=True)

    def _name(self, key: Any) -> str:
        return f"{self._prefix}.{_digest(key)}.nbc"


class _Cache(FunctionCache):
    """Compiled signatures of a function in named files."""

    def __init__(self, function: Callable):
        super().__init__(function)
        self._cache_file = _NamedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Not numba's own method, which imports all that a compilation needs, in half a second.
        loaded = None
        with self._guard_against_spurious_io_errors():
            loaded = self._load_overload(sig, target_context)
        if loaded is None:
            _announce()
        return loaded


@cache
def _announce() -> None:
    """Log that loops are compiled, in the first call."""
    logging.getLogger("robustnmf").info("compiling, once; this takes a few seconds")


def _digest(key: Any) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def compiled(*, exact: bool = False, inline: str = "never") -> Callable[[Callable], Any]:
    """Return a decorator that compiles a loop with numba, and keeps it in files.

    Loops release the GIL, cannot allocate arrays, and divide by zero without an error, because
    checks would keep them scalar. Sums run in any order, in vectors, unless they must be ``exact``.
    """
    options = OPTIONS | {"inline": inline, "fastmath": not exact and {"reassoc", "contract"}}

    def decorate(function: Callable) -> Any:
        dispatcher: Any = njit(**options)(function)
        if hasattr(dispatcher, "_cache"):  # not with NUMBA_DISABLE_JIT
            dispatcher._cache = _Cache(function)
        return dispatcher

    return decorate
