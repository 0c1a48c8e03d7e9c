"""Judgments from clicks: graded, with confidences.

::

    Sessions ──counts──▶ successes in trials ──shrinkage──▶ posteriors ──levels──▶ ClickJudgments
                ▲                                                       qrels, truth, undecided
    spellings of a query, counted together                              agreement with people
"""
