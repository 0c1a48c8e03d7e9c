"""The page to search an index, and to compare the first stage with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from firstpage.serving.json_messages import ScoreTerm
from firstpage.serving.markup import Child, Html, join, tag
from firstpage.serving.page_contents import (
    FIRST_STAGE,
    MODEL,
    ComparedDocument,
    PageQuery,
    RankingComparison,
    Visitor,
    compare,
)
from firstpage.serving.page_frame import document, facts, search_box
from firstpage.serving.searching import (
    DEPTH,
    ResultDocument,
    texts_of,
)
from firstpage.serving.served_index import ServedIndex
from firstpage.serving.served_model import ServedModel
from firstpage.serving.snippets import MAX_ID, MarkedText, displayed
from firstpage.serving.watched_model import WatchedModel, printable

MAX_VALUE = 2000  # characters of a field of a document
MAX_FIELDS = 40
REASON_HEADS = ("Feature", "Value", "Contribution")
DEFAULT_SIDES = (MODEL, FIRST_STAGE)
NOTES = {
    "preference": "Your preference is stored. Thank you.",
    "known": "Your preference for these pages was stored before; the first one counts.",
    "judge": "The query and the first documents of both rankings are stored for judging.",
    "judged": "This query was stored for judging before.",
}
KEYS = (("/", "search"), ("j k", "next and previous"), ("h l", "other side"), ("Enter", "open"))


HINTS = (
    "A mark beside a document shows by how many ranks the model moved it.",
    "“Why this rank” lists the features that contribute most to the score.",
    "The address of a result page can be shared; add &depth=20 for 20 documents per side.",
)
ASKED = (
    "Which side is the model's is hidden until you have said which page is better.",
    "“Judge these” stores the query and its first documents for judging.",
    HINTS[-1],
)


class SearchPage:
    """Renders the page.

    Parameters
    ----------
    model : ServedModel
        The model in service.
    watched : WatchedModel
        Its file.
    static : str
        The address of the static files.
    query : PageQuery
        What the address asks for.
    problem : str, optional
        What is wrong with it.
    visitor : Visitor, optional
        Who is asked for feedback; by default nobody is.
    """

    def __init__(
        self,
        model: ServedModel,
        watched: WatchedModel,
        static: str,
        query: PageQuery,
        problem: str | None = None,
        visitor: Visitor | None = None,
    ) -> None:
        self.model, self.watched, self.static = model, watched, static
        self.query, self.problem, self.visitor = query, problem, visitor

    def compared(self) -> tuple[str, int]:
        """Search; return the page and the number of candidates."""
        comparison = compare(self.model, self.query)
        return self.html(comparison), comparison.candidates

    def html(self, comparison: RankingComparison | None) -> str:
        """Return the page; without a comparison, the search box only."""
        texts = texts_of(self.model)
        title = f"{self.query.text[:60]} - Firstpage" if self.query.text else "Firstpage"
        notes: list[Child] = [tag("p", line, class_="note warn") for line in texts.notes]
        if self.watched.refused:
            refused = f"The current model file is refused: {self.watched.refused}"
            notes.insert(0, tag("p", refused, class_="note warn"))
        if self.problem:
            notes.insert(0, tag("p", self.problem, class_="note wrong"))
        if comparison is None:
            content: list[Child] = [self._welcome(texts)]
        elif not comparison.candidates:
            content = [
                self._heading(),
                tag("p", "No document contains a word of this query.", class_="note"),
            ]
        else:
            content = self._compared(comparison)
        depth = None if self.query.depth == DEPTH else self.query.depth
        box = search_box(self.query.text, depth, focus=not self.query.text)
        return document(title, self.static, [*notes, *content], box)

    def _welcome(self, texts: ServedIndex) -> Html:
        """Return what can be searched, some queries to begin with, and how to search."""
        index, model = texts.index, self.model.model
        fields = ", ".join(displayed(name, MAX_ID).text for name in index.schema.analyzers)
        examples = [
            tag("a", tag("bdi", text), href=PageQuery(text).address, class_="button")
            for text in texts.titles
        ]
        return tag(
            "div",
            tag("h1", "Search and compare"),
            tag(
                "p",
                "Type what you look for. The page shows two rankings of the documents found: "
                "that of the model, and that of the first stage.",
                class_="lead-in",
            ),
            [tag("h2", "Try the words of a document"), tag("p", examples, class_="row")]
            if examples
            else None,
            tag("h2", "What is searched"),
            facts(
                [
                    (
                        "Index",
                        [tag("bdi", printable(index.path.name)), f": {len(index):,} documents"],
                    ),
                    ("Fields", fields),
                    ("First stage", f"{texts.scoring} finds up to {texts.candidates:,} documents"),
                    (
                        "Model",
                        [
                            tag("bdi", self.watched.name),
                            f": {model.ranker} ranks them by {model.n_features:,} features",
                        ],
                    ),
                ]
            ),
            tag("h2", "How it works"),
            tag("ul", [tag("li", text) for text in (HINTS if self.visitor is None else ASKED)]),
            _keys(),
            class_="page reading welcome",
        )

    def _heading(self) -> Html:
        return tag("h1", "Results for ", tag("bdi", self.query.text), class_="query")

    def _compared(self, comparison: RankingComparison) -> list[Child]:
        shown, note = len(comparison.model), NOTES.get(self.query.note) if self.visitor else None
        ids = {d.document.id for d in comparison.first_stage}
        new = sum(d.document.id not in ids for d in comparison.model)
        moved = sum(d.rank != d.other_rank for d in comparison.model)
        summary = f"{shown} of {comparison.candidates} candidates. "
        if comparison.is_same:
            summary += "Both pages are the same."
        elif not self._named:
            summary += "Two rankings of them, in random order."
        else:
            verb = "is" if new == 1 else "are"
            summary += f"The model moved {moved} of {shown}; {new} {verb} new on its page."
        return [
            self._heading(),
            tag("p", summary, class_="soft", role="status"),
            tag("p", note, class_="note good", role="status") if note else None,
            *self._columns(comparison),
            _keys(),
            self._questions(comparison),
        ]

    @property
    def _named(self) -> bool:
        """Whether the page shows which side is the model's."""
        return self.visitor is None or self.query.names

    def _columns(self, comparison: RankingComparison) -> list[Child]:
        ranker, scoring = self.model.model.ranker, texts_of(self.model).scoring
        headings = {MODEL: f"Model: {ranker}", FIRST_STAGE: f"First stage: {scoring}"}
        documents = {MODEL: comparison.model, FIRST_STAGE: comparison.first_stage}
        sides = DEFAULT_SIDES if self.visitor is None else self.visitor.sides(self.query.text)
        names = [headings[side] for side in sides] if self._named else ["Left page", "Right page"]
        return [
            _tabs([name.partition(":")[0] for name in names]),
            tag(
                "div",
                [
                    _side(
                        number,
                        names[number],
                        documents[side],
                        side if self._named else None,
                        comparison.explained,
                    )
                    for number, side in enumerate(sides)
                ],
                class_="sides",
            ),
        ]

    def _questions(self, comparison: RankingComparison) -> Html | None:
        """Return the forms that ask for feedback."""
        visitor, query = self.visitor, self.query
        if visitor is None:
            return None
        hidden: dict[str, str | int] = {"csrf": visitor.csrf, "q": query.text, "depth": query.depth}
        shown = comparison.digest(visitor.sides(query.text))
        if comparison.is_same:
            question: Child = tag("p", "Both pages are the same, so neither is better.")
        elif self._named:
            question = tag(
                "p",
                "The names are shown, so you are not asked which page is better. ",
                tag("a", "Hide the names", href=replace(query, names=False, note="").address),
            )
        else:
            question = join(
                tag("h2", "Which page is better?"),
                _form(
                    "/preference",
                    {**hidden, "shown": shown},
                    [
                        tag("button", text, name="outcome", value=value)
                        for value, text in (
                            ("left", "Left"),
                            ("equal", "Equal"),
                            ("right", "Right"),
                        )
                    ],
                ),
                tag(
                    "a",
                    "Show which is which",
                    href=replace(query, names=True, note="").address,
                    class_="button quiet",
                ),
            )
        names = {"show": "names"} if query.names else {}
        judge = _form("/judge", {**hidden, **names}, [tag("button", "Judge these")])
        return tag(
            "section",
            question,
            judge,
            class_="card ask",
            aria_label="Feedback",
        )


def _form(action: str, hidden: Mapping[str, str | int], buttons: Sequence[Html]) -> Html:
    fields = [tag("input", type="hidden", name=name, value=v) for name, v in hidden.items()]
    return tag("form", fields, tag("span", buttons, class_="row"), action=action, method="post")


def _tabs(names: Sequence[str]) -> Html:
    """Return the links that show one side, on a narrow screen."""
    links = [tag("a", name, href=f"#side{i}", class_="button") for i, name in enumerate(names)]
    return tag("nav", links, class_="tabs", aria_label="Sides")


def _side(
    number: int,
    heading: str,
    documents: Sequence[ComparedDocument],
    side: str | None,
    explained: str,
) -> Html:
    items = [_result(document, side, number, explained) for document in documents]
    return tag(
        "section",
        tag("h2", heading, id=f"heading{number}"),
        tag("ol", items, class_="results"),
        id=f"side{number}",
        aria_labelledby=f"heading{number}",
        class_="side",
        data_side=number,
    )


def _result(compared: ComparedDocument, side: str | None, number: int, explained: str) -> Html:
    """Return a document; without a side, nothing tells which ranking this is."""
    document = compared.document
    name = displayed(document.id, MAX_ID)
    heading = _marked(document.title) if document.title and document.title.text else _cut(name)
    reasons = None
    if compared.explanation is not None and side is not None:
        label = "Why this rank" if side == MODEL else "Reasons of the model"
        reasons = tag("details", tag("summary", label), _reasons(compared, side, explained))
    return tag(
        "li",
        tag("span", str(compared.rank), class_="rank", aria_hidden="true"),
        tag("h3", tag("bdi", heading)),
        tag(
            "p",
            None if side is None else _move(compared, side),
            tag("span", tag("bdi", _cut(name)), class_="soft id"),
            class_="line",
        ),
        tag("p", _marked(document.snippet), class_="snippet", dir="auto")
        if document.snippet and document.snippet.text
        else None,
        reasons,
        tag("details", tag("summary", "Whole document"), _fields(document)),
        class_="result",
        tabindex="-1",
        data_document=document.id,
        value=compared.rank,
        id=f"r{number}-{compared.rank}",
    )


def _move(compared: ComparedDocument, side: str) -> Html:
    """Return how the model moved a document."""
    by = (
        compared.other_rank - compared.rank
        if side == MODEL
        else compared.rank - compared.other_rank
    )
    other = "first stage" if side == MODEL else "model"
    if by == 0:
        return tag("span", "= ", tag("span", f"rank {compared.rank} on both sides"), class_="tag")
    arrow, word, kind = ("▲", "up", "good") if by > 0 else ("▼", "down", "bad")
    return tag(
        "span",
        tag("span", f"{arrow} {abs(by)}", aria_hidden="true"),
        tag("span", f"{word} {abs(by)} ", class_="sr"),
        f" ({other}: {compared.other_rank})",
        class_=f"tag {kind}",
    )


def _reasons(compared: ComparedDocument, side: str, explained: str) -> Html:
    """Return the table of the largest contributions to a score."""
    explanation = compared.explanation
    assert explanation is not None
    largest = max((abs(part.part) for part in explanation.parts), default=0.0) or 1.0
    rows = [_reason(part, largest) for part in explanation.parts]
    score = f" The score is {compared.score:.4g}." if side == MODEL else ""
    return join(
        tag(
            "table",
            tag("caption", f"The largest contributions to the model's score ({explained}).{score}"),
            tag("thead", tag("tr", [tag("th", head, scope="col") for head in REASON_HEADS])),
            tag("tbody", rows),
            class_="reasons",
        )
    )


def _reason(part: ScoreTerm, largest: float) -> Html:
    name = part.feature if isinstance(part.feature, str) else part.voter
    value = f"{part.value:.4g}" if isinstance(part.value, float) else ""
    kind = "plus" if part.part >= 0 else "minus"
    return Html(
        f'<tr><th scope="row">{escape(displayed(name, MAX_ID).text)}</th><td>{value}</td>'
        f'<td><meter class="{kind}" value="{abs(part.part) / largest:.3f}" aria-hidden="true">'
        f"</meter>{part.part:+.3g}</td></tr>"
    )


def _fields(document: ResultDocument) -> Html:
    """Return the fields of a document as they were indexed; long ones are cut and marked."""
    rows: list[Child] = []
    for name, value in list(document.source.items())[:MAX_FIELDS]:
        rows.append(tag("dt", displayed(name, MAX_ID).text))
        rows.append(tag("dd", _cut(displayed(value, MAX_VALUE)), dir="auto"))
    if len(document.source) > MAX_FIELDS:
        rows.append(tag("dt", f"{len(document.source) - MAX_FIELDS} more fields are not shown"))
    return tag("dl", rows, class_="fields")


def _marked(text: MarkedText) -> Html:
    """Return a text with its marks."""
    parts: list[Child] = [_ellipsis() if text.cut_start else None]
    end = 0
    for start, stop in text.marks:
        parts += [text.text[end:start], tag("mark", text.text[start:stop])]
        end = stop
    parts += [text.text[end:], _ellipsis() if text.cut_end else None]
    return join(*parts)


def _cut(text: MarkedText) -> Html:
    return join(text.text, _ellipsis() if text.is_cut else None)


def _ellipsis() -> Html:
    return tag("span", "…", class_="cut", title="cut for display")


def _keys() -> Html:
    words = [[tag("kbd", key), f" {text}  "] for key, text in KEYS]
    return tag("p", words, class_="soft keys", aria_label="Keyboard")
