"""The bodies of requests: every text and number is bounded, so that both databases can store it.

Texts that they cannot store are refused in all bodies (`admission.DEFAULTS`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from firstpage.labeling.app.store.options import Tool
from firstpage.labeling.app.store.scales import MAX_GRADES, MAX_TAGS
from firstpage.labeling.app.store.tokens import Scope

MAX_INT = 2**31 - 1  # the largest id: an INTEGER column in both databases
END = r"$(?!\n)"  # in Python, `$` alone also matches before a line break

Text = Annotated[str, Meta(max_length=200)]
LongText = Annotated[str, Meta(max_length=5000)]
Guidelines = Annotated[str, Meta(max_length=200_000)]
Key = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9_\-]{{1,64}}{END}")]
Slug = Annotated[str, Meta(pattern=rf"^[a-z0-9][a-z0-9\-]{{0,63}}{END}")]
Bad = Annotated[list[Text], Meta(max_length=2)]
Secret = Annotated[str, Meta(min_length=1, max_length=600)]
Id = Annotated[int, Meta(ge=1, le=MAX_INT)]
Number = Annotated[int, Meta(ge=0, le=MAX_INT)]  # such as that of an event in the log of a task
Limit = Annotated[int, Meta(ge=1, le=1000)]  # of the rows of an answer
Outcome = Annotated[int, Meta(ge=-2, le=MAX_GRADES - 1)]
Reasons = Annotated[list[Text], Meta(max_length=MAX_TAGS)]
Aspects = Annotated[dict[Text, Number], Meta(max_length=MAX_TAGS)]
KnownDocuments = Annotated[list[Number], Meta(max_length=5000)]
Keys = Annotated[list[Text], Meta(min_length=1, max_length=10_000)]
Role = Literal["lead", "assessor"]
ToolName = Literal["pairs", "grades", "lists"]


class Body(Struct, forbid_unknown_fields=True):
    """A body that refuses unknown fields."""


class BadBody(Body, kw_only=True):
    """A body with documents that are marked bad, each named once."""

    bad: Bad = []

    def __post_init__(self) -> None:
        if len(set(self.bad)) < len(self.bad):
            raise ValueError("`bad` must name each document once")


class Span(Body):
    """A time span of one kind; implausible times are corrected by `judging.answer_timing`."""

    kind: Literal["active", "paused", "away"]
    ms: float | None = None
    start: str | None = None


class AnswerBody(BadBody, kw_only=True):
    """An answer; the reply contains the next documents, except `known` ones, if that is given."""

    seq: Number
    key: Key
    left: Text
    right: Text | None = None
    outcome: Outcome = 0
    skipped: bool = False
    reasons: Reasons = []
    aspects: Aspects = {}
    reason: LongText | None = None
    comment: LongText | None = None
    shown_at: str | None = None
    answered_at: str | None = None
    spans: list[Span] = []
    known: KnownDocuments | None = None


class StepBody(Body):
    seq: Number
    key: Key


class ReviseBody(BadBody, kw_only=True):
    """A changed answer; without `reasons` or `aspects` those of the answer stay."""

    seq: Number
    key: Key
    index: Number
    outcome: Outcome
    reasons: Reasons | None = None
    aspects: Aspects | None = None


class SpansBody(Body):
    key: Key
    spans: list[Span]


class ReasonBody(Body):
    reason: LongText


class SwitchBody(Body):
    key: Key | None = None
    strategy: Text | None = None
    k: Annotated[int, Meta(ge=1, le=100_000)] | None = None


class ProjectBody(Body):
    slug: Slug
    title: Text = ""
    guidelines: Guidelines = ""
    tool: Tool = "pairs"
    setting: dict[str, Any] = {}
    options: dict[str, Any] = {}


class ChangeBody(Body):
    """Changes of a project; what is null or left out stays."""

    title: Text | None = None
    guidelines: Guidelines | None = None
    tool: Tool | None = None
    setting: dict[str, Any] | None = None
    options: dict[str, Any] | None = None


class QueriesBody(Body):
    queries: Keys


class DocumentsBody(Body):
    query: Text
    documents: Keys


class VerdictBody(BadBody, kw_only=True):
    """A verdict, by default with the project's first tool.

    Without `right` it is on one document: a grade, or 0 for bad and 1 for not.
    """

    key: Key
    query: Text
    tool: ToolName | None = None
    left: Text
    right: Text | None = None
    outcome: Annotated[int, Meta(ge=-2, le=100)]
    reason: Annotated[str, Meta(min_length=1, max_length=5000)]


class WithdrawBody(Body):
    key: Key
    query: Text
    index: Number
    tool: ToolName | None = None


class LoginBody(Body):
    login: Text
    password: Secret


class PasswordBody(Body):
    old: Secret
    new: Secret


class AcceptBody(Body):
    token: Text
    login: Text = ""
    name: Text = ""
    password: Annotated[str, Meta(max_length=600)] = ""


class ResetBody(Body):
    token: Text
    password: Secret


class TokenBody(Body):
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    scope: Scope = "read"
    days: Annotated[float, Meta(gt=0, le=3650)] | None = None


class WebhookBody(Body):
    url: Annotated[str, Meta(min_length=1, max_length=2000)]


class DeleteBody(Body):
    judgments: Literal["anonymize", "remove"]


class InviteBody(Body):
    role: Role = "assessor"
    days: Annotated[float, Meta(gt=0, le=365)] = 14


class MemberBody(Body):
    login: Text
    name: Text = ""
    role: Role = "assessor"
