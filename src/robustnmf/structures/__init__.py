"""Dictionary of structures by name. To add one, add a file here and an entry to the dictionary."""

from robustnmf.structures._base import Free, Structure
from robustnmf.structures.convex import Convex
from robustnmf.structures.orthogonal import Orthogonal

STRUCTURES: dict[str, type[Structure]] = {
    "free": Free,
    "convex": Convex,
    "orthogonal": Orthogonal,
}

__all__ = ["STRUCTURES", "Convex", "Free", "Orthogonal", "Structure"]
