"""The code blocks of a page: what they print is held to what the page shows.

- A ``python`` block runs.  The ``text`` block right below it is what it prints; a block that prints
  nothing asserts something.
- A ``console`` block runs command by command.  The lines below a command are what it prints; they
  may be left out where ``-o`` names a file, which the command must write.
- Words and integers are exact.  A number with a decimal point may differ by ``UNITS`` in its last
  digit shown: 0.853 stands for 0.85331 and for 0.8517.  ``...`` stands for anything: a time, a
  path, the rest of a table.  Bars and rules do not count.
- ``<!-- tolerance: 0.01 -->`` above a block bounds the error of all its numbers instead.
- ``make TARGET`` is checked for its target, and ``make demo`` runs ``firstpage demo``, which a
  finished demo may replace.
- ``<!-- not run: why -->`` above a block: its commands are only parsed, its Python only compiled.

The blocks of one page run in one folder, in order, in this process.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import click

import firstpage as fp
from firstpage.cli import app, main

ROOT = Path(__file__).parents[2]
UNITS = 2
LEAST_DIGITS = 2  # of numbers below 10: 0.5 may be 0.500 without its zeros

_BLOCK = re.compile(
    r"(?P<notes>(?:^<!-- [^\n]* -->\n)*)^```(?P<language>(?P<py>python)|\w*)\n(?P<code>.*?)^```$"
    r"(?(py)(?:\n+```text\n(?P<shown>.*?)^```$)?)",
    re.M | re.S,
)
NUMBER = r"(?<![\w.])[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?!\w)"
_TOKEN = re.compile(rf"{NUMBER}|\w+|[^\s\u2500-\u259f]")  # without rules and bars
FinishedDemo = Callable[[], tuple[Path, str]]  # returns its folder and its output


class Block(NamedTuple):
    """A block of code, and what is written around it."""

    language: str
    code: str
    shown: str
    notes: dict[str, str]
    source: str
    line: int


class Outcome(NamedTuple):
    """What a block or one of its commands did, and what is wrong with it, if anything is."""

    command: str
    shown: str
    printed: str = ""
    problem: str = ""


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page in order."""
    return [
        Block(
            match["language"],
            match["code"],
            match["shown"] or "",
            dict(re.findall(r"<!-- ([\w ]+?): (.*?) -->", match["notes"])),
            match[0],
            text.count("\n", 0, match.start("language")) + 1,
        )
        for match in _BLOCK.finditer(text)
    ]


def outcomes(block: Block, demo: FinishedDemo | None = None) -> Iterator[Outcome]:
    """Run a block in the current folder, where a copy of a finished demo saves another run of it."""
    if block.language == "python":
        yield _run_python(block)
    elif block.language == "console":
        yield from (_run_command(block, *each, demo) for each in commands(block.code))
    elif re.search(r"^(\$ |firstpage )", block.code, re.M):
        yield Outcome("", block.code, problem="a command stands in a block that is not `console`")


def _run_python(block: Block) -> Outcome:
    tree = ast.parse(block.code)
    if "not run" in block.notes:
        unknown = [name for name in _names(tree) if not hasattr(fp, name)]
        return Outcome("", "", problem=f"there is no fp.{unknown[0]}" if unknown else "")
    with redirect_stdout(StringIO()) as out:
        exec(compile(tree, "block", "exec"), {"__name__": "block"})
    printed, problem = out.getvalue(), ""
    if printed or block.shown:
        problem = difference(block.shown, printed, _tolerance(block))
    elif not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        problem = "it prints nothing and asserts nothing"
    return Outcome("", block.shown, printed, problem)


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a program takes from `fp`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="fp"), attr=name):
                yield name


def commands(code: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the lines shown below it."""
    parts = re.split(r"^\$ ", code, flags=re.M)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def _run_command(block: Block, command: str, shown: str, demo: FinishedDemo | None) -> Outcome:
    program, name, *_ = command.split()
    if program == "make":
        known = re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.M)
        problem = "" if known else "there is no such target"
        if name == "demo":  # later blocks use its files
            code, printed = _run_or_copy(["demo"], demo)
            problem = f"it ends with {code}:\n{printed}" if code else ""
        return Outcome(command, shown, problem=problem)
    args = shlex.split(command, comments=True)[1:] if program == "firstpage" else []
    try:
        output = parse(args) if args else None
    except click.UsageError as error:
        return Outcome(command, shown, problem=error.format_message())
    if "not run" in block.notes:
        return Outcome(command, shown)
    if program != "firstpage":
        return Outcome(command, shown, problem="it cannot be run here: say why as a `not run` note")
    if output is not None and output.is_file():
        output.unlink()  # what is there afterwards is new
    code, printed = _run_or_copy(args, demo)
    if code:
        problem = f"it ends with {code}:\n{printed}"
    elif output is not None and not _written(output):
        problem = f"it did not write {output}"
    elif shown or output is None:
        problem = difference(shown, printed, _tolerance(block))
    else:
        problem = ""
    return Outcome(command, shown, printed, problem)


def _resolve(args: list[str]) -> tuple[click.Context, list[str]]:
    """Return the context of the command that a command line names, and the words after it."""
    context = click.Context(app, info_name="firstpage", **app.context_settings)
    while isinstance(context.command, click.Group) and args:
        name, child, args = context.command.resolve_command(context, list(args))
        assert child is not None
        context = click.Context(child, context, name)
    return context, args


def unknown_options(args: list[str]) -> list[str]:
    """Return the options of a command line, whole or not, that its command does not have."""
    context, words = _resolve(args)
    known = {option for p in context.command.get_params(context) for option in p.opts}
    named = [word.partition("=")[0] for word in words if re.match(r"-\w$|--\w", word)]
    return [option for option in named if option not in known]


def parse(args: list[str]) -> Path | None:
    """Return the file after ``-o``; a UsageError where a command line does not fit its command."""
    context, words = _resolve(args)
    command = context.command
    command.parse_args(context, list(words))
    outputs = [p.name for p in command.params if "-o" in p.opts and p.name]
    return next((Path(context.params[name]) for name in outputs if context.params[name]), None)


def _written(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.is_file()


def _run_or_copy(args: list[str], demo: FinishedDemo | None) -> tuple[int, str]:
    """Run a command, or copy the files of a demo that has run with the same options."""
    if demo is None or args[0] != "demo" or not set(args[1::2]) <= {"-o"}:
        return run(args)
    target = parse(args)
    assert target is not None
    folder, printed = demo()
    shutil.copytree(folder, target)
    return 0, printed


def run(args: list[str]) -> tuple[int, str]:
    """Return the exit code of a command and what a terminal shows of it."""
    screen = TextIOWrapper(BytesIO(), "utf-8", write_through=True)
    with (
        mock.patch.object(sys, "argv", ["firstpage", *args]),
        mock.patch.object(sys, "path", list(sys.path)),
        warnings.catch_warnings(),
        redirect_stdout(screen),
        redirect_stderr(screen),
    ):
        warnings.simplefilter("ignore")
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    screen.seek(0)
    return int(code or 0), screen.read()


def _tolerance(block: Block) -> float | None:
    note = block.notes.get("tolerance")
    return None if note is None else float(note.partition(",")[0])


def difference(shown: str, printed: str, tolerance: float | None = None) -> str:
    """Return how a text differs from what a page shows of it; "" where it does not."""
    if not shown:
        return f"the page does not show what it prints:\n{printed}"
    if _matches(shown, printed, tolerance):
        return ""
    return f"the page shows\n{shown}and it prints\n{printed}"


def _matches(shown: str, printed: str, tolerance: float | None) -> bool:
    head, *parts = (_TOKEN.findall(part) for part in shown.split("..."))
    tokens = _TOKEN.findall(printed)
    if not parts:
        return len(head) == len(tokens) and _agree(head, tokens, tolerance)
    if not _agree(head, tokens, tolerance):
        return False
    tokens = tokens[len(head) :]
    *middle, tail = parts
    for part in middle:  # the first place where it stands
        starts = range(len(tokens) - len(part) + 1)
        at = next((i for i in starts if _agree(part, tokens[i:], tolerance)), None)
        if at is None:
            return False
        tokens = tokens[at + len(part) :]
    return len(tail) <= len(tokens) and _agree(tail, tokens[len(tokens) - len(tail) :], tolerance)


def _agree(shown: list[str], tokens: list[str], tolerance: float | None) -> bool:
    """Return whether a text begins as the page shows it."""
    pairs = zip(shown, tokens, strict=False)
    return len(shown) <= len(tokens) and all(_same(a, b, tolerance) for a, b in pairs)


def _same(shown: str, printed: str, tolerance: float | None) -> bool:
    if shown == printed:
        return True
    if not (re.fullmatch(NUMBER, shown) and re.fullmatch(NUMBER, printed)):
        return False
    bound = UNITS * _unit(shown) if tolerance is None else tolerance
    return abs(float(shown) - float(printed)) <= bound * (1 + 1e-9)


def _unit(number: str) -> float:
    """Return the value of one in the last digit shown, 0 for an integer."""
    mantissa, _, exponent = number.partition("e")
    if exponent or "." in mantissa:
        digits = len(mantissa.partition(".")[2])
        least = LEAST_DIGITS if abs(float(mantissa)) < 10 else 0
        return float(10.0 ** (int(exponent or 0) - max(digits, least)))
    return 0.0
