"""Lines beside the result: what a person should know."""

from __future__ import annotations

import sys


def note(text: str) -> None:
    """Write one line to standard error, as warnings of the library are written."""
    print(f"firstpage: note: {text}", file=sys.stderr)
