"""The study of Niu et al. (2012): entries, and the rooms that their numbers come from."""

from __future__ import annotations

from firstpage.papers.niu2012 import agreement, comparison, edges, effort, sweep
from firstpage.papers.study.letor_protocol import ROOMS
from firstpage.papers.study.study import Study

OWN = ("assessors", "labeling", "voted", "truths", "learned", "printed", "edges")
ENTRIES = (
    effort.table1(), effort.with_votes(), agreement.table2(), agreement.with_votes(),
    agreement.table3(), comparison.table4(), comparison.orders(), comparison.ohsumed(),
    comparison.table5(), sweep.figure1(), sweep.figure2(), edges.edges(),
)  # fmt: skip

NIU2012 = Study(
    "niu2012",
    "Niu, Guo, Lan, Cheng: Top-k Learning to Rank: Labeling, Ranking and Evaluation (SIGIR 2012)",
    {entry.name: entry for entry in ENTRIES},
    (*ROOMS, "firstpage.labeling", *(f"firstpage.papers.niu2012.{name}" for name in OWN)),
)
