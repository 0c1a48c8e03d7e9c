"""Click models: probabilities of clicks by document, rank and the clicks above.

::

    Sessions ──▶ CountedPages (equal pages once) ──EM──▶ attractiveness, examination, continuation
    Sessions ──fitted model──▶ log-likelihood, probabilities of clicks, simulated clicks

Table models (`tables.py`) multiply attractiveness and a table of examination by rank and last click
above.  Chain models (`chains.py`) examine results from top to bottom.  Each family has one kernel
of expected counts (`core/kernels/click_models.py`), and all share one maximization (`em.py`).
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
