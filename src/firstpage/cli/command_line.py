"""Checks of a whole command line: repeated options, and files that are both read and written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


class InputFile(click.Path):
    """The type of an option or argument that names a file or a folder to read."""

    name = "file"

    def __init__(self, name: str = "file") -> None:
        super().__init__(path_type=Path)
        self.name = name


class WrittenFile(click.Path):
    """The type of an option that names a file or a folder to write.

    Parameters
    ----------
    may_replace : str, optional
        Name of the parameter whose file this one may be; any other file that is read is refused.
    """

    def __init__(self, may_replace: str | None = None) -> None:
        super().__init__(path_type=Path)
        self.may_replace = may_replace


def refuse_repeated_options(
    command: click.Command, args: Sequence[str], parent: click.Context | None = None
) -> None:
    """Refuse an option that takes one value and is given twice, in any subcommand."""
    name = "firstpage" if parent is None else command.name
    context = click.Context(command, parent, name, **command.context_settings)
    _, rest, order = command.make_parser(context).parse_args(list(args))
    for option in order:
        if isinstance(option, click.Option) and _is_single(option) and order.count(option) > 1:
            text = max(option.opts, key=len)
            raise click.UsageError(f"{text} is given twice; it takes one value.", context)
    if isinstance(command, click.Group) and rest:
        _, subcommand, rest = command.resolve_command(context, list(rest))
        if subcommand is not None:
            refuse_repeated_options(subcommand, rest, context)


def refuse_overwriting(context: click.Context) -> None:
    """Refuse a command that would write to a file that it reads, or twice to one file."""
    written: dict[Path, str] = {}
    parameters = context.command.params
    read = {
        path: parameter
        for parameter in parameters
        if isinstance(parameter.type, InputFile)
        for path in _regular_paths(context.params.get(str(parameter.name)))
    }
    for parameter in parameters:
        if not isinstance(parameter.type, WrittenFile):
            continue
        name = _shown_name(parameter)
        for path in _regular_paths(context.params.get(str(parameter.name))):
            if path in read and read[path].name != parameter.type.may_replace:
                source = _shown_name(read[path])
                raise click.UsageError(
                    f"{name} {path.name} is also read ({source}); write to another file.", context
                )
            if path in written:
                raise click.UsageError(
                    f"{written[path]} and {name} name the same file ({path.name}); give two.",
                    context,
                )
            written[path] = name


def _regular_paths(value: object) -> list[Path]:
    """Return the absolute paths of a parameter, without standard output and devices."""
    paths = value if isinstance(value, tuple) else (value,)
    resolved = [path.resolve() for path in paths if isinstance(path, Path) and str(path) != "-"]
    return [path for path in resolved if path.is_file() or path.is_dir() or not path.exists()]


def _shown_name(parameter: click.Parameter) -> str:
    """Return the name of a parameter as the command line shows it."""
    if isinstance(parameter, click.Option):
        return parameter.opts[0]
    return parameter.human_readable_name.upper()


def _is_single(option: click.Option) -> bool:
    """Return whether an option may be given once only; repeating a flag changes nothing."""
    return not (option.multiple or option.is_flag or option.count)
