"""Measures of rankings, comparisons of systems, planning, aggregation, and learned measures.

::

    scores + labels ─┐
                     ├─▶ RankedLists ──measure──▶ values per query ──▶ Evaluation, Comparison
    run + qrels ─────┘        ▲                                         gates, plans, estimates
                          Convention: ties, levels, queries
    several runs ──▶ Ballots ──method──▶ one order, with its Kemeny cost
    preferences over result lists ──DCGLearn──▶ gains and discounts ──▶ a measure, certificates

Every input becomes ranked lists, which are sorted no further than the measures read.  A measure is
a frozen dataclass with one method, which calls a kernel.  Tied documents get the mean over all
their orders.

To change                                   open
------------------------------------------  -----------------------------------------------------
a measure                                   measures/binary.py, measures/graded.py, ..
its name here and in other tools            measures/registry.py, measures/names.py
ties, levels, queries without judgments     measures/convention.py
what `evaluate` accepts                     measures/sources.py, measures/inputs.py
tests of differences, intervals             measures/significance.py
`compare`, segments, groups of systems      comparison/
sample sizes, pools, samples, gates         planning/
a method of aggregation or fusion           aggregation/methods.py, aggregation/fusion.py
learning of gains and discounts             dcglearn/learn.py, dcglearn/solver.py
certificates of verdicts                    dcglearn/certificates/
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
