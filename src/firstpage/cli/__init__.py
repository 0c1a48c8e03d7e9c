"""The command line: a module per command, or per family of short ones.

::

    arguments ──options──▶ a command ──▶ functions of the packages below ──outputs──▶ report, files
                                └── errors of users: one line, worded in options, and an exit code

A command parses, calls and prints.  It computes nothing, and joins packages that do not know each
other.

To change                                   open
------------------------------------------  -----------------------------------------------------
a command                                   the module of its name: train.py, evaluate.py, ..
the list of commands                        commands.tsv
commands with subcommands                   label/, dcglearn/, clicks/, experiment/
options that several commands share         options.py, systems.py, gate.py
reading of inputs, progress bars, notes     shared.py
report formats and output files             outputs.py
messages in the words of options            wording.py
help and its examples                       help.py
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from firstpage import __version__
from firstpage.cli.command_line import refuse_repeated_options
from firstpage.cli.help import SectionedGroup
from firstpage.cli.wording import worded
from firstpage.core import FirstpageError, FirstpageWarning, kernels


def _read_sections() -> dict[str, dict[str, tuple[str, str]]]:
    """Return module and description of each command, by section, from commands.tsv."""
    lines = (Path(__file__).parent / "commands.tsv").read_text("utf-8").splitlines()[1:]
    sections: dict[str, dict[str, tuple[str, str]]] = {}
    for section, command, module, description in (line.split("\t") for line in lines):
        sections.setdefault(section, {})[command] = module, description
    return sections


SECTIONS = _read_sections()


@click.group(
    cls=SectionedGroup,
    sections=SECTIONS,
    examples=(
        "firstpage demo",
        'firstpage train "ListMLE(k=10)" train.txt --valid vali.txt -o model.json',
        "firstpage evaluate test.txt --model model.json -m NDCG@10 --ci",
    ),
    context_settings={"max_content_width": 100},
)
@click.version_option(__version__, message="firstpage %(version)s")
def app() -> None:
    """Learning to rank for the first page of results.

    `firstpage COMMAND --help` shows the options of a command, and examples.
    """


class NotePrinter:
    """Prints warnings of this package as notes, each once; those of libraries are not shown."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(
        self, message: Warning | str, category: type[Warning], *where: Any, **more: Any
    ) -> None:
        text = str(message)
        if isinstance(message, FirstpageWarning):
            context = click.get_current_context(silent=True)
            text = worded(message, context.command if context else None)
        if issubclass(category, FirstpageWarning) and text not in self._printed:
            self._printed.add(text)
            print(f"firstpage: note: {text}", file=sys.stderr)


def _note_compilation() -> None:
    """Print once why the first run takes longer: the kernels are being compiled."""
    kernels.on_compile = None
    print("firstpage: note: compiling for this machine; only the first run waits.", file=sys.stderr)


def main() -> None:
    """Run a command: exit with 0 when done, 1 on a user's error, 2 on wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that the terminal cannot show are escaped
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is not None and sys.stderr.isatty():
        kernels.on_compile = _note_compilation
    warnings.showwarning = NotePrinter()
    warnings.simplefilter("always", FirstpageWarning)
    code: int | None = 0
    try:
        refuse_repeated_options(app, sys.argv[1:])
        code = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("firstpage: stopped.", file=sys.stderr)
        code = 130
    except FirstpageError as error:
        print(f"firstpage: error: {' '.join(str(error).split())}", file=sys.stderr)
        code = 1
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        print(f"firstpage: error: {name}{error.strerror or error}.", file=sys.stderr)
        code = 1
    except MemoryError:
        print("firstpage: error: not enough memory for these data.", file=sys.stderr)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
