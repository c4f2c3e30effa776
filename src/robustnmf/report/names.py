"""Names of samples and features as pages show them."""

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
