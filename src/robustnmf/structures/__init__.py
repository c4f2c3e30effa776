"""Structures by name; a new one is a file beside these and a line in the dict."""

from robustnmf.structures._base import Free, Structure
from robustnmf.structures.convex import Convex
from robustnmf.structures.orthogonal import Orthogonal

STRUCTURES: dict[str, type[Structure]] = {
    "free": Free,
    "convex": Convex,
    "orthogonal": Orthogonal,
}

__all__ = ["STRUCTURES", "Convex", "Free", "Orthogonal", "Structure"]
