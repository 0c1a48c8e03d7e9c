"""Templates of pages: the layout and the error page that all applications share, and their own."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from firstpage.core.errors import plain_text

SHARED_FOLDER = Path(__file__).parent / "templates"
FIRST_WORD = re.compile(r"(?:a|[a-z][a-z'-]+)(?=[ ,;]|\.?$|\. )")


def page_templates(folder: Path) -> Environment:
    """Return the templates of a folder and the shared ones, each compiled once.

    Values are escaped, and undefined names are errors.  Pages extend the folder's `base.html`,
    which extends the shared `layout.html`.
    """
    return Environment(
        loader=FileSystemLoader([folder, SHARED_FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def sentence(error: object) -> str:
    """Return an error as a sentence for a page.

    The name of a file or of a parameter in front is not capitalized.
    """
    text = plain_text(error)
    return text[:1].upper() + text[1:] if FIRST_WORD.match(text) else text
