"""Names of samples and features, and shares, as pages show them."""

from __future__ import annotations

import re

MAX_LENGTH = 60
"""Characters of a name."""

INVISIBLE = re.compile(
    "[\ud800-\udfff\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def display_name(text: str) -> str:
    """Return a name as a page shows it: visible, and not too long."""
    text = INVISIBLE.sub("\ufffd", text)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "\u2026"


def display_note(note: str) -> str:
    """Return a note as a page shows it: visible, and not too long."""
    note = INVISIBLE.sub("\ufffd", note)
    return note if len(note) <= 5 * MAX_LENGTH else note[: 5 * MAX_LENGTH] + "\u2026"


def format_percent(share: float) -> str:
    """Write a share in percent, with fewer digits where it is small."""
    return f"{100 * share:.1f}%" if share >= 0.001 else f"{100 * share:.1g}%"


def counted(count: int, noun: str) -> str:
    """Write a number of things, with their noun in the singular for one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
