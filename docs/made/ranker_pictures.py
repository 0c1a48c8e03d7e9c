"""Pictures of what the losses of the rankers do to a small list."""

from __future__ import annotations

from functools import cache

import numpy as np

from firstpage import Dataset
from firstpage.core import charts
from firstpage.extend import loss
from firstpage.learning.rankers import create_ranker
from firstpage.learning.rankers.methods import METHODS

LABELS = (0, 2, 0, 1, 0, 0, 1, 0, 2, 0)  # in the order of the scores
SCORES = np.linspace(1.5, -1.5, len(LABELS))
K = 5
# Rankers that are composed of no loss, and follow this one.
FOLLOWED = {"RankBoost": "PairwiseExponential", "LambdaMART": "LambdaLoss"}


@cache
def ranker_pictures() -> dict[str, str]:
    """Return a chart per ranker by the name of its page: the pull of its loss on each document."""
    count = len(LABELS)
    truth = Dataset.from_arrays(np.zeros((count, 1)), LABELS, [1] * count).truth
    pictures = {}
    for name in METHODS:
        own = getattr(create_ranker(name, k=K).compose(), "loss", None)
        followed = loss(FOLLOWED[name]) if name in FOLLOWED else own
        if followed is None:  # it maximizes a measure directly
            continue
        _, gradient = followed.value_grad(SCORES, truth)
        rows = [
            (f"rank {rank}, label {label}", float(-g))
            for rank, (label, g) in enumerate(zip(LABELS, gradient, strict=True), 1)
        ]
        title = f"{name}: negative gradient of its loss by the score of each document"
        pictures[name.lower()] = charts.stacked([(charts.bars(rows, title), title)], title).svg
    return pictures


def with_picture(page: str, name: str) -> str:
    """Return the page of a ranker with its picture below the objective."""
    alt = f"Bars: {name} raises the scores of relevant documents and lowers those above them."
    images = "".join(
        f"![{alt}](../images/rankers/{name}{suffix}.svg){{.only-{theme}}}\n"
        for theme, suffix in (("light", ""), ("dark", "-dark"))
    )
    text = (
        "A list of ten documents in the order of their scores. A step of gradient descent moves each\n"
        f"score in the direction of its bar, here with `k={K}` where the loss has one.\n"
    )
    return page.replace("\n## Parameters\n", f"\n{text}\n{images}\n## Parameters\n", 1)
