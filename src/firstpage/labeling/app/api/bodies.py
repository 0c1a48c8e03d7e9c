"""The bodies of requests: every text is bounded and can be stored in both databases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from firstpage.labeling.app.store.connect import storable
from firstpage.labeling.app.store.options import Tool
from firstpage.labeling.app.store.scales import MAX_GRADES, MAX_TAGS
from firstpage.labeling.app.store.tokens import Scope

MAX_INT = 2**31 - 1  # the largest id: an INTEGER column in both databases


def distinct(documents: list[str]) -> list[str]:
    """Return the documents marked bad, if each is named once."""
    if len(set(documents)) < len(documents):
        raise ValueError("must name each document once")
    return documents


Text = Annotated[str, Field(max_length=200), AfterValidator(storable)]
LongText = Annotated[str, Field(max_length=5000), AfterValidator(storable)]
Guidelines = Annotated[str, Field(max_length=200_000), AfterValidator(storable)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_\-]{1,64}$")]
Bad = Annotated[list[Text], Field(max_length=2), AfterValidator(distinct)]
Secret = Annotated[str, Field(min_length=1, max_length=600), AfterValidator(storable)]
Id = Annotated[int, Path(ge=1, le=MAX_INT)]
EventNumber = Annotated[int, Path(ge=0, le=MAX_INT)]  # in the log of a task
BeforeId = Annotated[int | None, Query(ge=1, le=MAX_INT)]  # the last id of the page before
Number = Annotated[int, Field(ge=0, le=MAX_INT)]
Outcome = Annotated[int, Field(ge=-2, le=MAX_GRADES - 1)]
Reasons = Annotated[list[Text], Field(max_length=MAX_TAGS)]
Aspects = Annotated[dict[Text, Number], Field(max_length=MAX_TAGS)]


class Body(BaseModel):
    """A body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class Span(Body):
    """A time span of one kind; implausible times are corrected by `judging.answer_timing`."""

    kind: Literal["active", "paused", "away"]
    ms: float | None = None
    start: str | None = None


KnownDocuments = Annotated[list[Number], Field(max_length=5000)]


class AnswerBody(Body):
    """An answer; the reply contains the next documents, except `known` ones, if that is given."""

    seq: Number
    key: Key
    left: Text
    right: Text | None = None
    outcome: Outcome = 0
    bad: Bad = []
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


class ReviseBody(StepBody):
    """A changed answer; without `reasons` or `aspects` those of the answer stay."""

    index: Number
    outcome: Outcome
    bad: Bad = []
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
    k: Annotated[int, Field(ge=1, le=100_000)] | None = None


class ProjectBody(Body):
    slug: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9\-]{0,63}$")]
    title: Text = ""
    guidelines: Guidelines = ""
    tool: Tool = "pairs"
    setting: dict[str, Any] = {}
    options: dict[str, Any] = {}


class ChangeBody(Body):
    title: Text | None = None
    guidelines: Guidelines | None = None
    tool: Tool | None = None
    setting: dict[str, Any] | None = None
    options: dict[str, Any] | None = None


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
    password: Annotated[str, Field(max_length=600), AfterValidator(storable)] = ""


class ResetBody(Body):
    token: Text
    password: Secret


class TokenBody(Body):
    name: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(storable)]
    scope: Scope = "read"
    days: Annotated[float, Field(gt=0, le=3650)] | None = None


class WebhookBody(Body):
    url: Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(storable)]


class DeleteBody(Body):
    judgments: Literal["anonymize", "remove"]


class InviteBody(Body):
    role: Literal["lead", "assessor"] = "assessor"
    days: Annotated[float, Field(gt=0, le=365)] = 14


class MemberBody(Body):
    login: Text
    name: Text = ""
    role: Literal["lead", "assessor"] = "assessor"
