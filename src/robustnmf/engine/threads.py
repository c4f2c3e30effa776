"""Threads for blocks: several visits at a time, each with a single-threaded BLAS.

A product with a few columns does not benefit from the threads of BLAS, and they would be idle
between the products. So blocks are visited in parallel, on as many threads as BLAS is allowed to
use: ``OPENBLAS_NUM_THREADS``, ``threadpoolctl`` and the limits that joblib sets
for its workers are all respected.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Blas:
    """The BLAS thread limit of the process, reference-counted."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._allowed = 1
        self._limit: Any = None

    @contextmanager
    def on_one_thread(self) -> Iterator[int]:
        """Limit BLAS to one thread for the duration; yield the previous number of threads."""
        with self._lock:
            if not self._users:
                controller = _controller(_count_packages(len(sys.modules)))
                counts = [
                    library["num_threads"]
                    for library in controller.info()
                    if library["user_api"] == "blas"
                ]
                self._allowed = max(counts, default=os.cpu_count() or 1)
                self._limit = controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._users += 1
        try:
            yield self._allowed
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.__exit__(None, None, None)


_BLAS = _Blas()


@lru_cache(maxsize=1)
def _count_packages(modules: int) -> int:
    """Count the imported packages, again if the number of modules has changed."""
    return len({name.partition(".")[0] for name in list(sys.modules)})


@lru_cache(maxsize=1)
def _controller(packages: int) -> ThreadpoolController:
    """Find the BLAS libraries, again if more packages were imported, which can load another."""
    return ThreadpoolController()


_FREE = local()


@contextmanager
def one_of_many() -> Iterator[None]:
    """Keep the BLAS thread limits for the duration, because other threads run fits as well.

    If threads set and restore limits in turn, BLAS can remain on one thread.
    """
    before = getattr(_FREE, "on", False)
    _FREE.on = True
    try:
        yield
    finally:
        _FREE.on = before


class Threads:
    """A thread pool: calls run in parallel while it is open, and sequentially otherwise."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self.count = 1

    @contextmanager
    def open(self) -> Iterator[None]:
        """Open the pool for the duration; nested calls have no effect."""
        if self._pool is not None or getattr(_FREE, "on", False):
            yield
            return
        with _BLAS.on_one_thread() as count:
            if count == 1:
                yield
                return
            with ThreadPoolExecutor(count) as pool:
                self._pool, self.count = pool, count
                try:
                    yield
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
                finally:
                    self._pool, self.count = None, 1

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield results in the order of the items."""
        if self._pool is None:
            return map(function, items)
        return ahead(self._pool, function, items, 2 * self.count)


def ahead(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item], most: int
) -> Iterator[Result]:
    """Yield results of a pool in the order of the items; at most so many calls are ahead."""
    pending: deque[Future[Result]] = deque()
    for item in items:
        pending.append(pool.submit(function, item))
        if len(pending) > most:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def run_fits(fits: Iterable[Callable[[], Result]]) -> list[Result]:
    """Call functions that fit in parallel, each on a single thread."""

    def alone(fit: Callable[[], Result]) -> Result:
        with one_of_many():
            return fit()

    threads = Threads()
    with threads.open():
        return list(threads.each(alone, fits))
