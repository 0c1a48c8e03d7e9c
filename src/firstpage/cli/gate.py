"""The gate of `evaluate` and `compare`: options, and what happens after the measures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.evaluation import (
    planning,  # the face: only a gate loads what is behind it
)
from firstpage.evaluation.measures import Evaluation, measure, measures_by_text
from firstpage.evaluation.measures import measures as parse

check_options = options.combine(
    click.option(
        "--fail-under",
        multiple=True,
        metavar="MEASURE=VALUE",
        help="Exit with 1 if a mean is below this value, as in NDCG@10=0.42; may be repeated.",
    ),
    click.option(
        "--fail-if-worse",
        multiple=True,
        metavar="MARGIN",
        help="Exit with 1 if a one-sided test shows a loss of more than MARGIN against the "
        "baseline: a number, or MEASURE=NUMBER; may be repeated.  To pass takes at least "
        "3 / MARGIN queries.",
    ),
    click.option(
        "--fail-if-unsure",
        is_flag=True,
        help="Exit with 1 also if the queries do not decide about --fail-if-worse.",
    ),
    click.option(
        "--summary",
        type=outputs.OutputFile("markdown"),
        help="Write the checks to this file, in Markdown.",
    ),
    click.option(
        "--junit",
        type=outputs.OutputFile("junit"),
        help="Write the checks to this file, as JUnit XML.",
    ),
)
gate_options = options.combine(
    check_options,
    click.option(
        "--baseline",
        type=options.FILE,
        help="Earlier ranking, or a file of --save-baseline, for --fail-if-worse.",
    ),
    click.option(
        "--save-baseline",
        type=outputs.OutputFile("json", may_replace="baseline"),
        help="Write the values per query to this file, for a later --baseline (.json).",
    ),
)


@dataclass(frozen=True)
class GateRequest:
    """The options of the gate, checked and parsed.

    Attributes
    ----------
    measures : list of str
        The measures to compute: those of -m, and those that limits name.
    limits : dict of str to float
        Least means.
    margins : dict of str to float or None
        Greatest losses.
    summary, junit : Path or None
        Files to write.
    fail_if_unsure : bool
        Whether undecided checks fail.
    """

    measures: list[Any]
    limits: dict[str, float]
    margins: dict[str, float] | None
    summary: Path | None
    junit: Path | None
    fail_if_unsure: bool

    @classmethod
    def from_options(
        cls, settings: dict[str, Any], measures: Sequence[str], has_baseline: bool
    ) -> GateRequest:
        """Take the options of the gate out of the settings of the command."""
        measures = list(measures_by_text(measures))  # one text each, also of "NDCG@10,AP"
        files = {name: settings.pop(name) for name in ("summary", "junit")}
        under, worse = settings.pop("fail_under"), settings.pop("fail_if_worse")
        limits = _named_numbers(under, "--fail-under")
        margins: dict[str, float] | None = None
        if worse:
            plain = [text for text in worse if "=" not in text]
            if plain and len(worse) > 1:
                raise click.UsageError("--fail-if-worse: give one number, or MEASURE=NUMBER only.")
            margins = _named_numbers([] if plain else worse, "--fail-if-worse")
            if plain:
                margins = dict.fromkeys(measures, _number(plain[0], "--fail-if-worse"))
        if margins is not None and not has_baseline:
            raise click.UsageError("--baseline and --fail-if-worse go together; give both.")
        checked = bool(limits or margins is not None)
        options.only_with("--fail-under or --fail-if-worse", checked, "summary", "junit")
        options.only_with("--fail-if-worse", margins is not None, "fail_if_unsure")
        named = [*limits, *(margins or ())]
        return cls(
            _with_named(list(measures), named),
            limits,
            margins,
            fail_if_unsure=settings.pop("fail_if_unsure"),
            **files,
        )

    @property
    def checks_anything(self) -> bool:
        """Whether there is a limit or a margin."""
        return bool(self.limits) or self.margins is not None

    def apply(self, evaluations: Sequence[Evaluation], baseline: Any) -> bool:
        """Check the evaluations and write the reports; return whether all checks pass.

        `baseline` is an evaluation, a stored baseline, or None.
        """
        if not self.checks_anything:
            return True
        checks = planning.gate(
            evaluations,
            fail_under=self.limits,
            fail_if_worse=self.margins,
            baseline=None if self.margins is None else baseline,
            fail_if_unsure=self.fail_if_unsure,
        )
        if self.summary is not None:
            outputs.write_text(checks.to_markdown(), self.summary)
        if self.junit is not None:
            outputs.write_text(checks.to_junit(), self.junit)
        print(checks, file=sys.stderr)
        return checks.passed


def save_baseline(evaluation: Evaluation, truth: Any, path: Path) -> None:
    """Store the values of a ranking."""
    planning.Baseline.from_evaluation(evaluation, truth).save(path)
    print(f"wrote {path}", file=sys.stderr)


def read_baseline(path: Path | None, truth: Any, measured: Callable[[Path], Evaluation]) -> Any:
    """Return a stored baseline, or the evaluation of an earlier ranking, which `measured` makes."""
    if path is None:
        return None
    return _stored(path, truth) if path.suffix.lower() == ".json" else measured(path)


def _stored(path: Path, truth: Any) -> Any:
    """Read a stored baseline; print a note if the judgments have changed since."""
    stored = planning.Baseline.read(path)
    if stored.judgments and planning.fingerprint(truth) not in ("", stored.judgments):
        shared.note(
            f"{path}: the judgments have changed since it was written, so its values are those of "
            "other judgments; store it again with --save-baseline."
        )
    return stored


def _named_numbers(texts: Sequence[str], option: str) -> dict[str, float]:
    """Return MEASURE=NUMBER by measure; each measure once."""
    pairs = [_named_number(text, option) for text in texts]
    numbers = dict(pairs)
    if len(numbers) < len(pairs):
        raise click.UsageError(f"{option}: give each measure once; got {', '.join(texts)}.")
    return numbers


def _named_number(text: str, option: str) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    if not equals or not name.strip():
        raise click.UsageError(
            f"{option} takes MEASURE=NUMBER, such as NDCG@10=0.42; got {text!r}."
        )
    return name.strip(), _number(number, option)


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{option} takes a number; got {text!r}.") from None


def _with_named(measures: list[str], named: list[str]) -> list[str]:
    """Return the measures, and those that limits name and that are not among them."""
    for text in named:
        if measure(text) not in parse(measures):
            measures.append(text)
    return measures
