"""Options that take one value, given twice: refused, where click would take the last in silence."""

from __future__ import annotations

from collections.abc import Sequence

import click


def refuse_repeats(
    command: click.Command, args: Sequence[str], parent: click.Context | None = None
) -> None:
    """Refuse an option that stands twice and takes one value, of a command or of its verbs."""
    name = "firstpage" if parent is None else command.name
    context = click.Context(command, parent, name, **command.context_settings)
    _, rest, order = command.make_parser(context).parse_args(list(args))
    for option in order:
        if isinstance(option, click.Option) and _takes_one(option) and order.count(option) > 1:
            text = max(option.opts, key=len)
            raise click.UsageError(f"{text} is given twice, and takes one value.", context)
    if isinstance(command, click.Group) and rest:
        _, verb, rest = command.resolve_command(context, list(rest))
        if verb is not None:
            refuse_repeats(verb, rest, context)


def _takes_one(option: click.Option) -> bool:
    """Flags may stand twice: that changes nothing."""
    return not (option.multiple or option.is_flag or option.count)
