"""Write anew what pages show of their blocks' output: ``python -m tests.docs.refresh PAGE ..``.

Output that still holds is left as it is, and so is output shortened by ``...``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.examples import FROM_NOTHING, page_folder, write_examples
from tests.docs.pages import NUMBER, Block, Outcome, blocks, outcomes

DIGITS = 3  # of numbers that are printed in full


def shorten(text: str) -> str:
    """Return a text with its longest numbers cut to a few digits."""

    def short(match: re.Match[str]) -> str:
        number = match[0]
        if len(number.partition(".")[2]) <= 6:
            return number
        value = float(number)
        return f"{value:.{DIGITS}f}" if abs(value) >= 0.01 else f"{value:.{DIGITS}g}"

    return re.sub(NUMBER, short, text)


def refreshed(block: Block, results: list[Outcome]) -> str:
    """Return the source of a block and of the output below it, up to date."""
    if not any(outcome.problem for outcome in results) or "not run" in block.notes:
        return block.source
    fresh = [
        shorten(each.printed) if each.problem and "..." not in each.shown else each.shown
        for each in results
    ]
    head = block.source[: block.source.index("```")]
    if block.language == "python":
        return f"{head}```python\n{block.code}```\n\n```text\n{fresh[0]}```"
    lines = [f"$ {each.command}\n{text}" for each, text in zip(results, fresh, strict=True)]
    return f"{head}```console\n{''.join(lines)}```"


def main() -> None:
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        text = page.read_text()
        with TemporaryDirectory() as folder, page_folder(Path(folder)):
            if page.name not in FROM_NOTHING:
                write_examples(Path(folder))
            for block in blocks(text):
                text = text.replace(block.source, refreshed(block, list(outcomes(block))), 1)
        page.write_text(text)


if __name__ == "__main__":
    main()
