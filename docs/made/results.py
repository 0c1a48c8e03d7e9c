"""Tables of measured results in pages, from docs/made/results.json (`python docs/results.py`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "results.json"
SETS = {"mq2008": "MQ2008", "ohsumed": "OHSUMED"}
ALPHA = 0.05
_TABLE = re.compile(r"(<!-- table: ([\w ]+) -->\n)(?:\|[^\n]*\n)*")


def filled(text: str) -> str:
    """Return a page with its tables of results."""
    recorded = json.loads(FILE.read_text())
    return _TABLE.sub(lambda match: match[1] + TABLES[match[2]](recorded), text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def _number(value: float, digits: int = 4) -> str:
    rounded = f"{value + 1e-9:.{digits}f}"  # halves up: the file has rounded numbers
    return rounded.removeprefix("0")


def _means(entry: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the rows of `firstpage crossval -f json` by ranker and measure."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for row in [*entry["values"]["results"], *entry["values"].get("differences", [])]:
        rows.setdefault(row["ranker"], {}).setdefault(row["measure"], {}).update(row)
    return rows


def published(recorded: dict[str, Any]) -> str:
    """Return the table of our results and those published by LETOR."""
    entry = recorded["published by LETOR"]
    rows = []
    for name in ("ohsumed", "mq2008"):
        ours = _means(recorded[f"{name}, tuned"]) | _means(recorded[f"{name}, boosted"])
        for ranker, theirs in entry["values"][name].items():
            pairs = zip(entry["measures"], theirs, strict=True)
            cells = [
                f"{_number(ours[ranker][measure]['mean'], 3)} / {_number(bar, 3)}"
                for measure, bar in pairs
            ]
            rows.append([f"{SETS[name]} {ranker}", *cells])
    return _table(["ours / published", *entry["measures"]], rows)


def ties(recorded: dict[str, Any]) -> str:
    """Return the table of ListMLE with shared and random ties."""
    means = _means(recorded["ties"])
    measures = ["NDCG@1", "NDCG@3", "NDCG@10", "AP"]
    rows = [
        [
            f"`{ranker}`",
            *(
                _number(row[m]["mean"], 3)
                + (f" (seeds {_number(row[m]['sd_seeds'], 3)})" if row[m]["sd_seeds"] else "")
                for m in measures
            ),
        ]
        for ranker, row in means.items()
    ]
    return _table(["", *measures], rows)


def rankers(recorded: dict[str, Any]) -> str:
    """Return the table of all rankers with default parameters."""
    by_set = [_means(recorded[f"{name}, all rankers"]) for name in SETS]
    cost = recorded["cost of rankers"]["values"]
    measures = ["NDCG@1", "NDCG@10", "AP"]
    head = ["ranker", *(f"{t} {m}" for t in SETS.values() for m in measures), "CPU s", "KiB"]
    rows = []
    for ranker in by_set[0]:
        cells = [_with_mark(means[ranker][m]) for means in by_set for m in measures]
        shown = ranker if "(" in ranker else f"[{ranker}](rankers/{ranker.lower()}.md)"
        if ranker in cost:
            cells += [f"{cost[ranker][0]:.2f}", f"{cost[ranker][1] / 1024:.1f}"]
        rows.append([shown, *cells, *[""] * (len(head) - 1 - len(cells))])
    return _table(head, rows)


def _with_mark(row: dict[str, Any]) -> str:
    p = row.get("p")
    mark = "" if p is None or p >= ALPHA else (" ▼" if row["difference"] < 0 else " ▲")
    return _number(row["mean"], 3) + mark


def variants(ranker: str, recorded: dict[str, Any]) -> str:
    """Return the table of variants of a boosted ranker."""
    by_set = [_means(recorded[f"{name}, variants"]) for name in SETS]
    measures = ["NDCG@1", "NDCG@10"]
    rows = [
        [f"`{name}`", *(_number(means[name][m]["mean"], 3) for means in by_set for m in measures)]
        for name in by_set[0]
        if name.startswith(ranker)
    ]
    return _table(["", *(f"{title} {m}" for title in SETS.values() for m in measures)], rows)


def strategies(recorded: dict[str, Any]) -> str:
    """Return the table of labeling strategies by the budget of questions."""
    results = recorded["strategies"]["values"]["results"]
    rows: dict[str, list[str]] = {}
    for row in results:
        cells = rows.setdefault(row["strategy"], [f"`{row['strategy']}`"])
        cells.append(f"{_number(row['recall'], 3)} / {_number(row['kNDCG@10'], 3)}")
    budgets = dict.fromkeys(f"{row['budget']} questions" for row in results)
    questions = {row["strategy"]: f"{row['mean_questions']:.0f}" for row in results}  # the last
    rows = {name: [*cells, questions[name]] for name, cells in rows.items()}
    return _table(["recall / kNDCG@10", *budgets, "asked"], rows.values())


def coverage(recorded: dict[str, Any]) -> str:
    """Return the table of the coverage of estimates, about a population."""
    head = ["machine", "estimate of", "correlation", "judged"]
    for kind in ("tuned", "weight 1", "people alone", "machine alone"):
        head += [kind, "width"]
    rows = recorded["coverage"]["values"]["population"]
    return _table(head, ([*row[:2], *(cell.removeprefix("0") for cell in row[2:])] for row in rows))


def routing(recorded: dict[str, Any]) -> str:
    """Return the table of who is asked next."""
    head = ["machine (agreement)", "policy", "price", *(f"cost {n}" for n in (20, 40, 60, 80))]
    rows = recorded["routing"]["values"]["recall"]
    return _table(head, ([*row[:2], *(cell.removeprefix("0") for cell in row[2:])] for row in rows))


REAL_HEADS = {
    "judges": [
        "machine", "kappa", "agreement", "order of systems", "correlation", "bias", "coverage",
        "width", "people alone", "as good as",
    ],
    "documents": [
        "machine", "10 queries: error", "coverage", "width", "4 of 10 documents: error",
        "coverage", "width",
    ],
    "adjudication": [
        "people judge", "documents", "kappa", "order of systems", "error of NDCG@10", "changed",
    ],
    "position": [
        "queries", "answers", "prefers the first", "of equal grades", "pairs in both orders",
        "same answer", "one order: accuracy", "both: decided", "accuracy",
        "bits per request: one order", "both orders",
    ],
}  # fmt: skip


def real_machines(name: str, recorded: dict[str, Any]) -> str:
    """Return a table of machines that judged real documents, beside people."""
    rows = recorded["real machines"]["values"][name]
    short = (
        [re.sub(r"^(-?)0\.", r"\1.", cell).replace("nan", "") for cell in row[1:]] for row in rows
    )
    return _table(
        REAL_HEADS[name], ([row[0], *cells] for row, cells in zip(rows, short, strict=True))
    )


def rivals(recorded: dict[str, Any], sets: Sequence[str], agreement: bool) -> str:
    """Return recall / kNDCG by answers per document; `*` if different from `adaptive`."""
    values = recorded["rivals"]["values"]
    head, ratios = ["recall / kNDCG"], (1.0, 2.0, 4.0)
    for name in sets:
        title = name.partition(",")[0]
        head += [f"{title}, {ratio:g} n" for ratio in ratios]
        head += [f"{title}, agreement"] if agreement else [f"{title}, recorded"]
    rows: dict[str, list[str]] = {}
    for name in sets:
        for row in values[name]["rows"]:
            cells = rows.setdefault(row["strategy"], [f"`{row['strategy']}`"])
            marks = [
                "*" if abs(row[f"{m} difference"]) > row[f"{m} half"] else ""
                for m in ("recall", "kNDCG")
            ]
            numbers = [
                _number(row[m], 3) + mark
                for m, mark in zip(("recall", "kNDCG"), marks, strict=True)
            ]
            cells.append(" / ".join(numbers))
            if row["ratio"] == ratios[-1]:
                last = _number(row["agreement"], 3) if agreement else f"{row['recorded']:.0%}"
                cells.append(last)
    return _table(head, rows.values())


RIVAL_SETS = ("arguments", "cast", "dl")
RECORDED_SETS = ("cast, all pairs recorded", "dl, all pairs recorded")
TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "published": published,
    "ties": ties,
    "rankers": rankers,
    "AdaRank variants": partial(variants, "AdaRank"),
    "RankBoost variants": partial(variants, "RankBoost"),
    "strategies": strategies,
    "coverage": coverage,
    "routing": routing,
    "rivals": partial(rivals, sets=RIVAL_SETS, agreement=False),
    "rivals recorded": partial(rivals, sets=RECORDED_SETS, agreement=True),
    **{f"real {name}": partial(real_machines, name) for name in REAL_HEADS},
}
