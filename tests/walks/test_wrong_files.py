"""A command that reads a file of another kind names only its own options, and no parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.soak.wrong_files import OUTPUTS
from tests.walks.test_formats import READ, call, commands, written

__all__ = ["written"]  # a fixture

WRONG = ("learned.run", "graded.qrels", "binary", "folds", "data.txt")
# Parameters of functions that options set; `name=value` also writes parameters of rankers.
PARAMETERS = re.compile(r"(?<![\w(.])(format|categorical|position|dtype|numbering|valid)=|fp\.")


def cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield commands, and their words with one wrong file per option or argument."""
    files = {path.name for path in folder.iterdir()}
    names = sorted((name for name, _ in commands()), key=len, reverse=True)
    seen = set()
    for block in READ.values():
        for line in block.strip().splitlines():
            words = line.split()
            name = next(each for each in names if line.strip().startswith(f"{each} "))
            for i, word in enumerate(words):
                if word not in files or words[i - 1] in OUTPUTS:
                    continue
                place = words[i - 1] if words[i - 1].startswith("-") else i
                if (name, place) not in seen:
                    seen.add((name, place))
                    yield from ((name, [*words[:i], wrong, *words[i + 1 :]]) for wrong in WRONG)


def test_messages_name_options_that_the_command_has(written: Path) -> None:
    Path("binary").write_bytes(b"\0\1\2\xff" * 50)
    known = {
        name: {text for each in command.params for text in (*each.opts, *each.secondary_opts)}
        for name, command in commands()
    }
    errors, wrong = 0, set()
    for name, words in cases(written):
        code, printed = call(" ".join(words))
        errors += code != 0
        for line in printed.splitlines():
            if line.startswith(("firstpage: ", "Error: ")):
                own = re.sub(r"`?firstpage [a-z].*", "", line.removeprefix("firstpage: "))
                named = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", own))
                if not named <= known[name] or PARAMETERS.search(own):
                    wrong.add(f"firstpage {' '.join(words)}\n{line}")
    assert not wrong, "\n".join(sorted(wrong))
    assert errors > 200
