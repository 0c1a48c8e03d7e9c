"""The five papers: experiments, printed values and theorems of each, run again.

::

    study.py of a paper ──▶ entries: experiments and claims ──▶ study/run.py ──▶ runs, each once
                                                          └──▶ study/page.py ──▶ tables, verdicts
    theorems.py of a paper ──▶ checks of statements ──▶ theory/registry.py ──▶ report

A claim is a sentence of a paper with a test on the values of several runs.  Printed values stand
beside the recomputed ones.

To change                                   open
------------------------------------------  -----------------------------------------------------
tables and figures of one paper             niu2012/, xia2009/, lan2013/, zhou2013/, cheng2014/
how runs are distributed and stored         study/run.py
verdicts on claims                          study/claims.py
the protocol of LETOR's folds               study/letor_protocol.py
the report                                  study/page.py
checks of theorems                          theory/
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
