"""The command line: a file per verb, or per family of short ones.  Errors of users end here."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Any

import click

from firstpage import __version__, kernels
from firstpage.cli import (
    aggregate,
    compare,
    convert,
    crossval,
    data_files,
    dcglearn,
    demo,
    evaluate,
    explain,
    export,
    import_,
    label,
    listings,
    rank,
    reproduce,
    serve,
    theory,
    train,
)  # fmt: skip
from firstpage.cli.options import refuse_repeats
from firstpage.errors import FirstpageError, FirstpageWarning


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="firstpage %(version)s")
def app() -> None:
    """Learning to rank for the results that people see."""


for _file in (
    demo, convert, train, rank, explain, export, serve, import_, crossval, evaluate, compare,
    aggregate, label, dcglearn, reproduce, theory,
):  # fmt: skip
    app.add_command(_file.command)
for _command in (
    data_files.describe_command, data_files.shard_command, data_files.synthesize_command,
    listings.measures_command, listings.rankers_command,
):  # fmt: skip
    app.add_command(_command)


class _Notes:
    """Our warnings as notes to a person, each once; those of libraries are not shown."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(
        self, message: Warning | str, category: type[Warning], *where: Any, **more: Any
    ) -> None:
        text = str(message)
        if issubclass(category, FirstpageWarning) and text not in self._said:
            self._said.add(text)
            print(f"firstpage: note: {text}", file=sys.stderr)


def _say_once() -> None:
    """The first run waits for the compiler: a person at a terminal should know why."""
    kernels.on_compile = None
    print("firstpage: note: preparing for this machine; only the first run waits.", file=sys.stderr)


def main() -> None:
    """Run a command: exit 0 when done, 1 on a user's error, 2 on wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no error
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is not None and sys.stderr.isatty():
        kernels.on_compile = _say_once
    warnings.showwarning = _Notes()
    warnings.simplefilter("always", FirstpageWarning)
    code: int | None = 0
    try:
        refuse_repeats(app, sys.argv[1:])
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
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        print(f"firstpage: error: {name}{error.strerror or error}.", file=sys.stderr)
        code = 1
    except MemoryError:
        print("firstpage: error: not enough memory for these data.", file=sys.stderr)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
