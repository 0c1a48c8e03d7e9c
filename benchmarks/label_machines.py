"""Twenty language models as judges, beside people, and GPT-4o's preferences by position.

    python benchmarks/label_machines.py --data DATA --json machines.json

Data: LLMJudge (25 queries of TREC DL 2023, 4,423 pairs of query and passage, graded 0 to 3 by
people and by 20 models), and GPT-4o's answers to 51,153 pairs of passages of TREC DL 2019 and 2020.

There are no runs for these queries.  The grades of a model order the passages of a query as a
ranking system would, ties at random (measures are means over their orders), so each judge evaluates
the systems of the 19 other models.

Held equal: all judges have the same documents and systems; all estimates the same draws of queries.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

import firstpage as fp
from common import show, versions
from firstpage.evaluation.planning import document_mean, powered_mean

DRAWS, JUDGED, DEPTH, SEED = 1000, 10, 10, 0
DOCUMENTS = JUDGED * DEPTH  # judged by people in both designs of the sample of documents
TRIO = ("h2oloo-zeroshot1", "Olz-gpt4o", "RMITIR-llama38b")
FRACTIONS = (0.1, 0.2, 0.4)


class Grades:
    """The grades of people and machines: arrays per judge, in the same order of documents."""

    def __init__(self, folder: Path) -> None:
        files = sorted((folder / "judges" / "llmjudge").glob("*.txt"))
        rows = {
            file.stem: {
                tuple(line.split()[::2]): float(line.split()[3])
                for line in file.read_text().splitlines()
            }
            for file in files
        }
        pairs = sorted(rows["human"], key=lambda pair: (pair[0], pair[1]))
        self.qid = np.unique([query for query, _ in pairs], return_inverse=True)[1]
        self.human = np.array([rows["human"][pair] for pair in pairs])
        self.machines = {
            name: np.array([grades[pair] for pair in pairs])
            for name, grades in rows.items()
            if name != "human"
        }

    def ndcg(self, system: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return NDCG@10 per query; a query without relevant documents counts 0."""
        report = fp.evaluate(system, labels, qid=self.qid, measures=["NDCG@10"])
        return np.nan_to_num(np.array(report.values[0]))


def kappa(a: np.ndarray, b: np.ndarray) -> float:
    """Return Cohen's kappa of two lists of grades."""
    observed = np.mean(a == b)
    expected = sum(np.mean(a == g) * np.mean(b == g) for g in np.union1d(a, b))
    return float((observed - expected) / (1 - expected))


def judges(grades: Grades) -> list[list[str]]:
    """Return, per machine, its agreement, its order of systems, and estimates with its help."""
    rng = np.random.default_rng(SEED)
    n = grades.qid.max() + 1
    draws = [np.isin(np.arange(n), rng.choice(n, JUDGED, replace=False)) for _ in range(DRAWS)]
    human = {name: grades.ndcg(g, grades.human) for name, g in grades.machines.items()}
    rows = []
    for name, labels in grades.machines.items():
        others = [other for other in human if other != name]
        values = {other: grades.ndcg(grades.machines[other], labels) for other in others}
        means = [(human[other].mean(), values[other].mean()) for other in others]
        order = kendalltau(*zip(*means, strict=True)).statistic
        p, worth, widths, hits = np.full(n, JUDGED / n), [], [], []
        for number, drawn in enumerate(draws):
            other = others[number % len(others)]
            y, f = human[other], values[other]
            tuned = powered_mean(y[drawn], f, p, drawn, None, "queries")
            alone = powered_mean(y[drawn], f, p, drawn, 0.0, "queries")
            low, high = tuned.interval(0.95)
            hits.append(low <= y.mean() <= high)
            people = alone.interval(0.95)
            widths.append((high - low, people[1] - people[0]))
            worth.append(powered_mean(y[drawn], f, p, drawn).equivalent_queries)
        width = np.mean(widths, axis=0)
        with np.errstate(invalid="ignore"):  # a judge who gives a system the same value everywhere
            correlation = np.nanmean([np.corrcoef(human[o], values[o])[0, 1] for o in others])
        bias = np.mean([machine - person for person, machine in means])
        rows.append(
            [
                name, kappa(grades.human, labels), np.mean(grades.human == labels),
                order, correlation, bias, np.mean(hits), width[0], width[1], np.median(worth),
            ]
        )  # fmt: skip
    rows.sort(key=lambda row: -row[1])
    return [[row[0], *(f"{value:.3f}" for value in row[1:9]), f"{row[9]:.1f}"] for row in rows]


def top_ten(system: np.ndarray, start: int, stop: int, rng: np.random.Generator) -> np.ndarray:
    """Return the first documents of a query by a system, ties at random."""
    order = np.lexsort((rng.random(stop - start), -system[start:stop]))
    return start + order[:DEPTH]


def documents(grades: Grades) -> list[list[str]]:
    """Return errors of P@10 from judged documents: all of some queries, or some of all queries."""
    rng = np.random.default_rng(SEED)
    limits = np.searchsorted(grades.qid, np.arange(grades.qid.max() + 2))
    n = len(limits) - 1
    per_query = DOCUMENTS // n
    names = [str(q) for q in range(n)]
    pool = fp.Run.from_dict(
        {q: dict.fromkeys(map(str, range(DEPTH)), per_query / DEPTH) for q in names}
    )
    of_all = fp.planning.QuerySample(tuple(names), np.ones(n), np.ones(n, bool))
    most = np.full(n * DEPTH, 1 / DEPTH)
    rows = []
    for name in sorted(grades.machines):
        labels = grades.machines[name]
        others = [other for other in grades.machines if other != name]
        errors, hits, widths = defaultdict(list), defaultdict(list), defaultdict(list)
        tops = {
            other: np.array(
                [top_ten(grades.machines[other], limits[q], limits[q + 1], rng) for q in range(n)]
            )
            for other in others
        }
        for draw in range(DRAWS):
            top = tops[others[draw % len(others)]]
            y, f = (grades.human[top] >= 2).astype(float), (labels[top] >= 2).astype(float)
            truth = y.mean()
            drawn = np.isin(np.arange(n), rng.choice(n, JUDGED, replace=False))
            whole = powered_mean(
                y.mean(axis=1)[drawn],
                f.mean(axis=1),
                np.full(n, JUDGED / n),
                drawn,
                None,
                "queries",
            )
            drawn = np.argsort(np.argsort(rng.random((n, DEPTH)), axis=1), axis=1) < per_query
            sample = fp.planning.DocumentSample(of_all, pool, drawn.ravel())
            some = document_mean(sample, y[drawn] / DEPTH, f.ravel() / DEPTH, most, None, "queries")
            for design, mean in {"queries": whole, "documents": some}.items():
                low, high = mean.interval(0.95)
                errors[design].append((mean.value - truth) ** 2)
                hits[design].append(low <= truth <= high)
                widths[design].append(high - low)
        row = [name]
        for design in ("queries", "documents"):
            row += [
                f"{np.sqrt(np.mean(errors[design])):.3f}", f"{np.mean(hits[design]):.3f}",
                f"{np.mean(widths[design]):.3f}",
            ]  # fmt: skip
        rows.append(row)
    return rows


def adjudication(grades: Grades) -> list[list[str]]:
    """Return the quality of labels of three machines, corrected by people on some documents."""
    rng = np.random.default_rng(SEED)
    trio = np.array([grades.machines[name] for name in TRIO])
    median, disagreement = np.median(trio, axis=0), np.ptp(trio, axis=0)
    systems = {name: g for name, g in grades.machines.items() if name not in TRIO}
    truth = np.array([grades.ndcg(g, grades.human).mean() for g in systems.values()])
    rows = []
    for fraction in (0.0, *FRACTIONS):
        count = round(fraction * len(median))
        for policy in ("disagreement", "random") if count else ("machines alone",):
            results = []
            for _ in range(5):
                noise = rng.random(len(median))
                key = noise if policy == "random" else noise - disagreement
                judged = np.argsort(key)[:count]
                labels = median.copy()
                labels[judged] = grades.human[judged]
                values = [grades.ndcg(g, labels).mean() for g in systems.values()]
                results.append(
                    [
                        kappa(grades.human, labels),
                        kendalltau(truth, values).statistic,
                        np.mean(np.abs(values - truth)),
                        np.mean(labels[judged] != median[judged]) if count else np.nan,
                    ]
                )
            mean = np.mean(results, axis=0)
            rows.append([policy, f"{fraction:.0%}", *(f"{value:.3f}" for value in mean)])
    return rows


def position(folder: Path) -> list[list[str]]:
    """Return what the order of a pair does to GPT-4o's answers, per year and in all.

    One order and both are compared on the pairs that were asked in both and have unequal grades.
    """
    counts: dict[str, np.ndarray] = {}
    for year in ("19", "20"):
        grade = {}
        for line in (folder / "passages" / f"qrels.dl{year}").read_text().splitlines():
            query, _, document, value = line.split()
            grade[query, document] = int(value)
        path = folder / "judges" / "gpt4o-pairs" / f"dl{year}.tsv"
        answers: dict[tuple[str, ...], list[bool]] = defaultdict(list)
        for line in path.read_text().splitlines()[1:]:
            query, a, b, preferred = line.split("\t")
            if a != b:
                answers[query, a, b].append(preferred == a)
        counts[f"DL {year}"] = sum(
            (position_counts(answers, grade, pair) for pair in answers), np.zeros(len(COUNTED))
        )
    counts["both years"] = counts["DL 19"] + counts["DL 20"]
    rows = []
    for name, counted in counts.items():
        c = dict(zip(COUNTED, counted, strict=True))
        one, two = c["correct"] / c["single"], c["right"] / c["decided"]
        decided = c["decided"] / (c["single"] / 2)
        rows.append(
            [
                name, f"{c['answers']:.0f}", f"{c['first'] / c['answers']:.3f}",
                f"{c['equal first'] / c['equal']:.3f}", f"{c['pairs']:.0f}",
                f"{c['same'] / c['pairs']:.3f}", f"{one:.3f}", f"{decided:.3f}", f"{two:.3f}",
                f"{information(one):.3f}", f"{decided * information(two) / 2:.3f}",
            ]
        )  # fmt: skip
    return rows


COUNTED = (
    "answers", "first", "equal", "equal first", "pairs", "same", "single", "correct", "decided",
    "right",
)  # fmt: skip


def position_counts(
    answers: dict[tuple[str, ...], list[bool]], grade: dict[tuple[str, str], int], pair: tuple
) -> np.ndarray:
    """Return the counts of one pair in one order; those of both orders at its first order only."""
    query, a, b = pair
    given, other = answers[pair], answers.get((query, b, a))
    difference = grade[query, a] - grade[query, b]
    counts = [len(given), sum(given)]
    counts += [0, 0] if difference else counts[:2]
    if other is None or a > b:
        return np.array([*counts, 0, 0, 0, 0, 0, 0], float)
    same = given[0] != other[0]
    better = difference > 0
    counts += [1, same]
    if difference:
        correct = (given[0] == better) + (other[0] != better)
        counts += [2, correct, same, same and given[0] == better]
    else:
        counts += [0, 0, 0, 0]
    return np.array(counts, float)


def information(accuracy: float) -> float:
    """Return the bits that an answer of this accuracy has about which document is better."""
    p = np.array([accuracy, 1 - accuracy])
    return float(1 + (p * np.log2(p)).sum())


TABLES = {
    "judges": (
        f"{JUDGED} of 25 queries judged by people, {DRAWS} draws, about these queries",
        ["machine", "kappa", "agreement", "order of systems", "correlation", "bias", "coverage",
         "width", "people alone", "as good as"],
    ),
    "documents": (
        f"P@10 from {DOCUMENTS} documents judged by people, {DRAWS} draws",
        ["machine", "queries: error", "coverage", "width", "documents: error", "coverage", "width"],
    ),
    "adjudication": (
        f"the median of {', '.join(TRIO)}, corrected by people",
        ["people judge", "documents", "kappa", "order of systems", "error of NDCG@10", "changed"],
    ),
    "position": (
        "GPT-4o's answers by position",
        ["queries", "answers", "prefers the first", "of equal grades", "pairs in both orders",
         "same answer", "one order: accuracy", "both: decided", "accuracy",
         "bits per request: one order", "both orders"],
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of the sets")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    chosen = parser.parse_args()
    grades = Grades(chosen.data)
    rows = {}
    for name, compute in {
        "position": lambda: position(chosen.data),
        "adjudication": lambda: adjudication(grades),
        "judges": lambda: judges(grades),
        "documents": lambda: documents(grades),
    }.items():
        rows[name] = compute()
        title, head = TABLES[name]
        show(title, head, rows[name], versions("numpy"))
        sys.stdout.flush()
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
