"""Logs of clicks: sessions, click models, propensities, judgments.

::

    log ──read_sessions──▶ Sessions ──describe──▶ what is in it, what is too thin
                               ├──judge──▶ ClickJudgments: qrels with confidences
                               └──▶ models, propensities

To change                                   open
------------------------------------------  -----------------------------------------------------
pages, impressions and clicks in memory     sessions.py
which form a file has, what is read of it   formats/registry.py
names of columns, bad values, decisions     formats/collector.py
lists of results with clicked documents     formats/page_rows.py, formats/yandex.py
tables                                      formats/tables.py
what `describe` shows                       description.py
judgments from clicks                       judgments/
click models, their fits and comparison     models/
which ranks documents connect               position_bias/swaps.py
estimates of propensities                   position_bias/harvesting.py
methods of propensities, their result       position_bias/propensities.py
trust bias                                  position_bias/trust.py
value of a policy from another one's log     policies.py
what a new ranking would have earned        counterfactual.py
simulated users                             simulation.py
several rankings as one list, its credit    interleaving.py
confidence sequences                        sequences.py
analysis of experiments                     experiments.py
sessions that an experiment needs           sensitivity.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
