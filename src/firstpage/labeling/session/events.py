"""The events of a labeling session: judgments, undos, revisions, changes of the setting.

The event log is the only stored state of a session; everything else is computed by replay.
Verdicts of leads on a query have a log of their own, which is replayed in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeVar

from firstpage.core import DataError, check_number

Kind = Literal["judgment", "repeat", "gold", "training", "probe"]
KINDS = ("judgment", "repeat", "gold", "training", "probe")
DEFAULT_STRATEGY = "adaptive"
MAX_RATE = 0.5  # of repeats, of gold questions and of probes
RATES = ("repeat_rate", "gold_rate", "probe_rate")


@dataclass(frozen=True)
class Setting:
    """How a query is labeled: strategy, k and quality controls.

    Parameters
    ----------
    strategy : str, default "adaptive"
        Name of the labeling strategy, with parameters where needed, such as ``"heap"`` or
        ``"adaptive(budget=80)"``.
    k : int, default 10
        Number of documents to find and order.
    seed : int, default 0
        Seed of the document order, of the sides and of the repeated questions.
    refine : int, default 0
        Number of extra comparisons near rank k after the strategy has finished.
    repeat_rate : float, default 0.0
        Probability that an earlier question is asked again after a judgment, from 0 to 0.5.
    gold_rate : float, default 0.0
        Probability that a question with a known answer follows a judgment, from 0 to 0.5.
    probe_rate : float, default 0.0
        Probability that a judgment is followed by a pair whose outcome is implied by transitivity,
        from 0 to 0.5.

    Raises
    ------
    DataError
        If a parameter has the wrong type or is out of range.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.labeling.Setting("heap", k=5).strategy
    'heap'
    """

    strategy: str = DEFAULT_STRATEGY
    k: int = 10
    seed: int = 0
    refine: int = 0
    repeat_rate: float = 0.0
    gold_rate: float = 0.0
    probe_rate: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, str):
            raise DataError(f"the strategy must be a string; got {self.strategy!r}.")
        check_number(self, "k", minimum=1, integer=True)
        check_number(self, "seed", minimum=0, integer=True)
        check_number(self, "refine", minimum=0, integer=True)
        for name in RATES:
            check_number(self, name, minimum=0.0)
            if getattr(self, name) > MAX_RATE:
                raise DataError(
                    f"{name} must be between 0 and {MAX_RATE}; got {getattr(self, name)!r}."
                )


@dataclass(frozen=True)
class Judgment:
    """The answer to a question that was shown.

    Attributes
    ----------
    left : str
        The left document, or the document that was graded.
    right : str or None
        The right document; None where one document was graded.
    outcome : int
        1 if the left document is better, -1 if the right one is, 0 if neither is; 2 and -2 mean
        much better. For a grade, the grade.
    bad : tuple of str
        Documents among the two that were flagged as clearly irrelevant.
    kind : {"judgment", "repeat", "gold", "training", "probe"}
        Why the question was asked.
    skipped : bool
        Whether the assessor skipped the question.
    """

    left: str
    right: str | None
    outcome: int
    bad: tuple[str, ...] = ()
    kind: Kind = "judgment"
    skipped: bool = False


@dataclass(frozen=True)
class Undo:
    """Removes the last active judgment."""


@dataclass(frozen=True)
class Revision:
    """Changes the answer of the active judgment with number `index`, counted from 0.

    The strategy restarts from there with all judgments known, so no answer is lost.
    """

    index: int
    outcome: int
    bad: tuple[str, ...] = ()


@dataclass(frozen=True)
class SettingChange:
    """Changes the setting; earlier judgments stay known."""

    setting: Setting


@dataclass(frozen=True)
class LeadVerdict:
    """The decision of a lead on a pair of documents, or on one document.

    Attributes
    ----------
    left : str
        The left document, or the only one.
    right : str or None
        The right document; None for a verdict on one document.
    outcome : int
        1 if the left document is better, -1 if the right one is, 0 if neither is; 2 and -2 mean
        much better. For one document its grade, or 0 (bad) and 1 (not bad) where documents are
        compared.
    bad : tuple of str
        Documents among the two that are clearly irrelevant.
    """

    left: str
    right: str | None
    outcome: int
    bad: tuple[str, ...] = ()

    @property
    def documents(self) -> frozenset[str]:
        """The documents that it is about, in any order."""
        return frozenset((self.left,) if self.right is None else (self.left, self.right))


@dataclass(frozen=True)
class Withdrawal:
    """Takes back the verdict that is event number `index` of the log, counted from 0."""

    index: int


Event = Judgment | Undo | Revision | SettingChange
EVENT_TYPES: dict[str, type[Any]] = {
    "judged": Judgment, "undone": Undo, "revised": Revision, "switched": SettingChange,
}  # fmt: skip
Adjudication = LeadVerdict | Withdrawal
ADJUDICATION_TYPES: dict[str, type[Any]] = {"adjudicated": LeadVerdict, "withdrawn": Withdrawal}
MAX_OUTCOME = 2  # of a comparison: much better
Source = TypeVar("Source")


class InconsistentEventError(DataError):
    """An event does not fit the log before it."""


def apply_event(active: list[Judgment], event: Event) -> None:
    """Apply an event to the list of active judgments; an inconsistent event changes nothing."""
    if isinstance(event, Judgment):
        active.append(event)
    elif isinstance(event, Undo):
        if not active:
            raise InconsistentEventError("there is nothing to undo.")
        active.pop()
    elif isinstance(event, Revision):
        if not 0 <= event.index < len(active):
            raise InconsistentEventError(
                f"there is no judgment {event.index}; there are {len(active)}."
            )
        old = active[event.index]
        revised = replace(old, outcome=event.outcome, bad=event.bad, skipped=False)
        check_outcome(revised)
        active[event.index] = revised


def replay(log: Iterable[tuple[Event, Source]]) -> list[tuple[Judgment, Source]]:
    """Return the active judgments after a log, each with the source of its first answer."""
    active: list[Judgment] = []
    sources: list[Source] = []
    for event, source in log:
        apply_event(active, event)
        if isinstance(event, Judgment):
            sources.append(source)
        del sources[len(active) :]
    return list(zip(active, sources, strict=True))


def replay_verdicts(
    log: Iterable[tuple[Adjudication, Source]],
) -> list[tuple[LeadVerdict, Source]]:
    """Return the active verdicts after a log, each with its source.

    A later verdict on the same documents does not remove an earlier one: `effective_verdicts` are
    the last ones, so that withdrawing the later one restores the earlier.
    """
    active: dict[int, tuple[LeadVerdict, Source]] = {}
    for number, (event, source) in enumerate(log):
        if isinstance(event, LeadVerdict):
            check_outcome(event)
            active[number] = event, source
        elif active.pop(event.index, None) is None:
            raise InconsistentEventError(f"event {event.index} is not an active verdict.")
    return list(active.values())


def effective_verdicts(active: Iterable[LeadVerdict]) -> list[LeadVerdict]:
    """Return the last of the verdicts on the same documents."""
    last = {verdict.documents: verdict for verdict in active}
    return list(last.values())


def check_outcome(judgment: Judgment | LeadVerdict) -> None:
    """Raise a DataError if the question does not allow the outcome or the bad documents."""
    if judgment.right is not None and abs(judgment.outcome) > MAX_OUTCOME:
        raise DataError(
            f"the outcome of a comparison must be an integer from -2 to 2; "
            f"got {judgment.outcome!r}."
        )
    for name in judgment.bad:
        if name not in (judgment.left, judgment.right):
            raise DataError(f"document {name!r} cannot be flagged as bad: it is not shown.")


def to_dict(event: Event | Adjudication) -> dict[str, Any]:
    """Return the event as a dictionary for JSON."""
    types = EVENT_TYPES | ADJUDICATION_TYPES
    name = next(name for name, cls in types.items() if isinstance(event, cls))
    return {"event": name, **asdict(event)}


def from_dict(record: Mapping[str, Any]) -> Event:
    """Return the event that `to_dict` wrote; unknown keys of the record are ignored."""
    cls = EVENT_TYPES.get(str(record.get("event")))
    if cls is None:
        raise DataError(
            f"an event must be one of {', '.join(EVENT_TYPES)}; got {record.get('event')!r}."
        )
    if cls is SettingChange:
        return SettingChange(setting_from_dict(record.get("setting") or {}))
    values = {f.name: record[f.name] for f in fields(cls) if f.name in record}
    if cls is Judgment:
        _check_judgment(values)
    if cls is Revision:
        _check_keys(values, "index", "outcome")
    if "bad" in values:
        values["bad"] = tuple(values["bad"])
    return cls(**values)  # type: ignore[no-any-return]


def adjudication_from_dict(record: Mapping[str, Any]) -> Adjudication:
    """Return the verdict or the withdrawal that `to_dict` wrote; unknown keys are ignored."""
    cls = ADJUDICATION_TYPES.get(str(record.get("event")))
    if cls is None:
        raise DataError(
            f"an event of this log must be one of {', '.join(ADJUDICATION_TYPES)}; got "
            f"{record.get('event')!r}."
        )
    values = {f.name: record[f.name] for f in fields(cls) if f.name in record}
    _check_keys(values, *(("index",) if cls is Withdrawal else ("left", "outcome")))
    if cls is LeadVerdict:
        values = {"right": None, **values, "bad": tuple(values.get("bad", ()))}
    return cls(**values)  # type: ignore[no-any-return]


def setting_from_dict(record: Mapping[str, Any]) -> Setting:
    """Return the setting of a mapping; unknown keys raise a DataError."""
    allowed = [f.name for f in fields(Setting)]
    for key in record:
        if key not in allowed:
            raise DataError(f"a setting has no key {key!r} (keys: {', '.join(allowed)}).")
    return Setting(**record)


def _check_judgment(values: Mapping[str, Any]) -> None:
    _check_keys(values, "left", "outcome")
    if values.get("right") is not None and abs(values["outcome"]) > MAX_OUTCOME:
        raise DataError(
            f"the outcome of a comparison must be an integer from -2 to 2; "
            f"got {values['outcome']!r}."
        )
    if values.get("kind", "judgment") not in KINDS:
        raise DataError(
            f"the kind of a judgment must be one of {', '.join(KINDS)}; got {values['kind']!r}."
        )


def _check_keys(values: Mapping[str, Any], *required: str) -> None:
    """Raise a DataError if a required key is missing or an integer key holds something else."""
    for name in required:
        if name not in values:
            raise DataError(
                f"a judgment needs the key {name!r}; it has {', '.join(values) or 'none'}."
            )
    for name in ("index", "outcome"):
        value = values.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool):
            raise DataError(f"the {name} of a judgment must be an integer; got {value!r}.")
