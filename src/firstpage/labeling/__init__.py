"""Labeling: an ordered top k per query from few judgments, by people and by programs.

::

    strategy (a generator) ──question──▶ Session ──▶ assessor: a page, a function, a model
             ▲──────────────answer───────── log of events ──replay──▶ state, top k, statistics
                                             │
    app: route ──▶ one transaction ──▶ event ┘──▶ next question ──▶ exports: truth, qrels, data

The state of a task is replayed from its log.  In the application the log in the database is
authoritative: an answer is acknowledged after it is stored.  Nothing outside `app` needs a web
server or a database.

To change                                   open
------------------------------------------  -----------------------------------------------------
a strategy                                  strategies/
what a session stores and replays           session/session.py, session/events.py
the adaptive choice of questions            belief/
agreement, effort, consistency              statistics/
who judges what                             planning/
programs as assessors, prompts, biases      machines/, assessors.py
simulated assessors                         simulation/
reranking: questions, belief, reply cache   rerank/
which documents of runs are judged          pooling.py
a page of the application                   app/pages/
a route of its JSON API                     app/api/
tables, transactions, backups               app/store/
imports, exports                            app/imports/, app/exports/
what leads see: progress, disputes, truth   app/analysis/
sign-in, roles, limits of requests          app/security.py, app/guard.py, app/admission.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
