"""Learning from clicks: logs and features become training data that every ranker takes.

::

    Sessions, propensities ──relevance.py──▶ relevance per query and document
    Dataset with features  ──training.py───▶ ClickTraining: labels and query weights, or pairs
    held-out clicks, old ranking, scores ──safety.py──▶ is the new ranking safely better?
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
