"""Pictures of what the losses of the rankers do to a small list, or of how the others learn."""

from __future__ import annotations

from functools import cache

import numpy as np

import firstpage as fp
from firstpage.core import charts
from firstpage.extend import loss
from firstpage.learning.rankers.methods import create_ranker
from firstpage.learning.rankers.registry import RANKERS

LABELS = (0, 2, 0, 1, 0, 0, 1, 0, 2, 0)  # in the order of the scores
SCORES = np.linspace(1.5, -1.5, len(LABELS))
K = 5
# Rankers that are composed of no loss, and follow this one.
FOLLOWED = {"RankBoost": "PairwiseExponential", "LambdaMART": "LambdaLoss"}
STEP = (
    "A list of ten documents in the order of their scores. A step of gradient descent moves each\n"
    f"score in the direction of its bar, here with `k={K}` where the loss has one."
)
STEP_ALT = "Bars: {} raises the scores of relevant documents and lowers those above them."
# Of the others: the text above the picture, and its description.
TEXTS = {
    "adarank": (
        "The training measure rises in every round if steps are halved; as published, it may stall\n"
        "or fall. 40 synthetic queries of 15 documents with 8 noisy features.",
        "Curves: training NDCG@10 by round, with halved steps and as published.",
    ),
    "focusedboost": (
        "The loss of the mixture falls in every round. With the printed edge, steps are longer at\n"
        "first, and training ends earlier. 40 synthetic queries, `k=5`, `beta=0.5`; each loss as a\n"
        "fraction of that after the first round.",
        "Curves: the training loss by round, with the printed and the adjusted edge.",
    ),
    "coordinateascent": (
        "The measure of one list by the change of one weight. It changes where two scores cross; a\n"
        "search visits all of these steps, and takes the middle of the best interval.",
        "A step function: NDCG@10 of a list by the change of one weight.",
    ),
    "toprank": (
        "Six candidates of a test query. Each voter has a position for each of them, counted from\n"
        "the bottom; TopRank takes the order that contradicts the weighted votes least.",
        "Lines: the position of six documents in the order of each voter, and in that of TopRank.",
    ),
}


@cache
def ranker_pictures() -> dict[str, str]:
    """Return a chart per ranker by the name of its page: the pull of its loss on each document, or
    how it learns."""
    count = len(LABELS)
    truth = fp.Dataset.from_arrays(np.zeros((count, 1)), LABELS, [1] * count).truth
    learning = {
        "AdaRank": rounds,
        "FocusedBoost": mixture,
        "CoordinateAscent": line_search,
        "TopRank": votes,
    }
    pictures = {}
    for name in RANKERS:
        if name in learning:  # it has no loss of scores
            title, drawing = learning[name]()
        else:
            followed = (
                FOLLOWED[name] if name in FOLLOWED else create_ranker(name, k=K).compose().loss
            )
            _, gradient = loss(followed).value_grad(SCORES, truth)
            rows = [
                (f"rank {rank}, label {label}", float(-g))
                for rank, (label, g) in enumerate(zip(LABELS, gradient, strict=True), 1)
            ]
            title = f"{name}: negative gradient of its loss by the score of each document"
            drawing = charts.bars(rows, title)
        pictures[name.lower()] = charts.stacked([(drawing, title)], title).svg
    return pictures


def synthetic(queries: int, docs: int = 15) -> fp.Dataset:
    """Return noisy lists of three grades with 8 features."""
    source = fp.Synthetic(queries=queries, docs=docs, features=8, grades=3, noise=0.5, seed=0)
    return source.dataset()


def rounds() -> tuple[str, str]:
    """Return the training measure of AdaRank by round, with and without halved steps."""
    series, data = {}, synthetic(40)
    for text in ("halvings=2", "halvings=None"):
        ranker = fp.ranker(f"AdaRank({text}, rounds=60)").fit(data)
        series[text] = [(step.iteration, 1 - step.loss) for step in ranker.history_]
    title = "AdaRank: training NDCG@10 by round"
    return title, charts.curves(series, title, "round", "training NDCG@10")


def mixture() -> tuple[str, str]:
    """Return the training loss of FocusedBoost by round, with both edges."""
    series, data = {}, synthetic(40)
    data = data.with_labels(data.truth.top_k(K))
    for edge in ("printed", "adjusted"):
        ranker = fp.FocusedBoost(k=K, edge=edge, rounds=60).fit(data)
        losses = [step.loss for step in ranker.history_]
        series[edge] = [(number, each / losses[0]) for number, each in enumerate(losses, 1)]
    title = "FocusedBoost: training loss by round"
    return title, charts.curves(series, title, "round", "loss, as a fraction of the first one")


def line_search() -> tuple[str, str]:
    """Return NDCG@10 of a list by the change of one weight."""
    data = synthetic(1, docs=10)
    X, scores = np.asarray(data.X, float), np.asarray(data.X, float) @ np.ones(8)
    direction = X[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = -(scores[:, None] - scores) / (direction[:, None] - direction)
    crossings = np.unique(crossings[np.isfinite(crossings)])
    middles = (crossings[1:] + crossings[:-1]) / 2
    at = np.concatenate([[crossings[0] - 1], middles, [crossings[-1] + 1]])
    levels = np.array([fp.evaluate(scores + t * direction, data)["NDCG@10"] for t in at])
    shown = np.abs(crossings) < 10
    first, last = int(np.argmax(shown)), len(shown) - int(np.argmax(shown[::-1]))
    title = "CoordinateAscent: NDCG@10 of a list by the change of one weight"
    return title, charts.steps(crossings[first:last], levels[first : last + 1], title)


def votes() -> tuple[str, str]:
    """Return the positions of the candidates of a query, by voter and by TopRank."""
    data, shown = synthetic(40), 6
    query = data[30:31]
    voters = {name: fp.ranker(name).fit(data[:30]) for name in ("Regression", "RankSVM", "ListNet")}
    top = fp.TopRank(depth=shown, voters=[*voters.values()]).fit(data[:30])
    scores = {name: each.predict(query) for name, each in {**voters, "TopRank": top}.items()}
    candidates = np.argsort(-scores["TopRank"])[:shown]
    places = {name: np.argsort(np.argsort(each[candidates])) + 1.0 for name, each in scores.items()}
    series = {
        f"{letter}, label {query.y[row]:g}": [
            (float(x), float(own[at])) for x, own in enumerate(places.values())
        ]
        for at, (letter, row) in enumerate(zip("ABCDEF", candidates, strict=True))
    }
    labels = dict(enumerate(map(str, places)))
    title = "TopRank: positions of six documents, counted from the bottom"
    return title, charts.curves(series, title, "voter", "position", tick_labels=labels)


def with_picture(page: str, name: str) -> str:
    """Return the page of a ranker with its picture below the objective."""
    text, alt = TEXTS.get(name, (STEP, STEP_ALT.format(name)))
    images = "".join(
        f"![{alt}](../images/rankers/{name}{suffix}.svg){{.only-{theme}}}\n"
        for theme, suffix in (("light", ""), ("dark", "-dark"))
    )
    return page.replace("\n## Parameters\n", f"\n{text}\n\n{images}\n## Parameters\n", 1)
