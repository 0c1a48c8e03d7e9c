"""What is written down: judgments, undoings, changes of the setting.  Nothing else is state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeVar

from firstpage.errors import DataError
from firstpage.registry import check_number

Kind = Literal["judgment", "repeat", "gold", "training"]
KINDS = ("judgment", "repeat", "gold", "training")
DEFAULT_STRATEGY = "adaptive"


@dataclass(frozen=True)
class Setting:
    """How a query is labeled.

    `refine`: questions spent near the k-th place after the strategy is done.  `repeats`, `golds`:
    shares of judgments after which one is asked again, or one with a known answer is mixed in.
    """

    strategy: str = DEFAULT_STRATEGY
    k: int = 10
    seed: int = 0
    refine: int = 0
    repeats: float = 0.0
    golds: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, str):
            raise DataError(f"a strategy is named by a text; got {self.strategy!r}.")
        check_number(self, "k", minimum=1, integer=True)
        check_number(self, "seed", minimum=0, integer=True)
        check_number(self, "refine", minimum=0, integer=True)
        for name in ("repeats", "golds"):
            check_number(self, name, minimum=0.0)
            if getattr(self, name) > 0.5:
                raise DataError(f"{name} is a share from 0 to 0.5; got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class Judged:
    """An answer to what was shown.

    `right` is None where one document was graded.  `outcome`: 1 the left one is better, -1 the
    right one, 0 neither (2 and -2: much better); or the grade.  `bad`: those of the two called
    clearly irrelevant.
    """

    left: str
    right: str | None
    outcome: int
    bad: tuple[str, ...] = ()
    kind: Kind = "judgment"
    skipped: bool = False


@dataclass(frozen=True)
class Undone:
    """The last judgment that still stands is taken back."""


@dataclass(frozen=True)
class Revised:
    """A judgment that stands, the one at this place from 0 on, gets another answer.

    The strategy begins anew from there, with all judgments known, so nothing is asked in vain.
    """

    at: int
    outcome: int
    bad: tuple[str, ...] = ()


@dataclass(frozen=True)
class Switched:
    """From here on, another setting; the judgments so far stay known."""

    setting: Setting


Event = Judged | Undone | Revised | Switched
WORDS: dict[str, type[Any]] = {
    "judged": Judged, "undone": Undone, "revised": Revised, "switched": Switched,
}  # fmt: skip
STRONGEST = 2  # outcome of a comparison: much better
Source = TypeVar("Source")


class OutOfStep(DataError):
    """An event that does not fit the log before it."""


def apply_event(standing: list[Judged], event: Event) -> None:
    """Apply one event to the judgments that stand; one that does not fit changes nothing."""
    if isinstance(event, Judged):
        standing.append(event)
    elif isinstance(event, Undone):
        if not standing:
            raise OutOfStep("there is nothing to undo.")
        standing.pop()
    elif isinstance(event, Revised):
        if not 0 <= event.at < len(standing):
            raise OutOfStep(f"there is no judgment {event.at}; {len(standing)} stand.")
        old = standing[event.at]
        changed = replace(old, outcome=event.outcome, bad=event.bad, skipped=False)
        check_outcome(changed)
        standing[event.at] = changed


def replay(log: Iterable[tuple[Event, Source]]) -> list[tuple[Judged, Source]]:
    """Return the judgments that stand after a log, each with the source of its first answer."""
    standing: list[Judged] = []
    sources: list[Source] = []
    for event, source in log:
        apply_event(standing, event)
        if isinstance(event, Judged):
            sources.append(source)
        del sources[len(standing) :]
    return list(zip(standing, sources, strict=True))


def check_outcome(judgment: Judged) -> None:
    """Refuse an outcome or a bad document that the question does not have."""
    if judgment.right is not None and abs(judgment.outcome) > STRONGEST:
        raise DataError(f"the outcome of a comparison is -2 to 2; got {judgment.outcome!r}.")
    for name in judgment.bad:
        if name not in (judgment.left, judgment.right):
            raise DataError(f"{name!r} cannot be called bad: it is not shown.")


def to_dict(event: Event) -> dict[str, Any]:
    """For JSON."""
    word = next(word for word, cls in WORDS.items() if isinstance(event, cls))
    return {"event": word, **asdict(event)}


def from_dict(record: Mapping[str, Any]) -> Event:
    """The event that `to_dict` wrote; other keys of the record are somebody else's."""
    cls = WORDS.get(str(record.get("event")))
    if cls is None:
        raise DataError(f"an event is one of {', '.join(WORDS)}; got {record.get('event')!r}.")
    if cls is Switched:
        return Switched(setting_from(record.get("setting") or {}))
    given = {f.name: record[f.name] for f in fields(cls) if f.name in record}
    if cls is Judged:
        _check_judgment(given)
    if cls is Revised:
        _need(given, "at", "outcome")
    if "bad" in given:
        given["bad"] = tuple(given["bad"])
    return cls(**given)  # type: ignore[no-any-return]


def setting_from(record: Mapping[str, Any]) -> Setting:
    """A setting of a mapping; keys that a setting does not have are refused."""
    allowed = [f.name for f in fields(Setting)]
    for key in record:
        if key not in allowed:
            raise DataError(f"a setting has no {key!r} (it has: {', '.join(allowed)}).")
    return Setting(**record)


def _check_judgment(given: Mapping[str, Any]) -> None:
    _need(given, "left", "outcome")
    if given.get("right") is not None and abs(given["outcome"]) > STRONGEST:
        raise DataError(f"the outcome of a comparison is -2 to 2; got {given['outcome']!r}.")
    if given.get("kind", "judgment") not in KINDS:
        raise DataError(f"the kind of a judgment is one of {', '.join(KINDS)}.")


def _need(given: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if name not in given:
            raise DataError(f"a judgment needs {name!r}; it has {', '.join(given) or 'nothing'}.")
    for name in ("at", "outcome"):
        value = given.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool):
            raise DataError(f"the {name} of a judgment is a whole number; got {value!r}.")
