from firstpage.papers.niu2012.labeling_tables import printed_agreement as printed_agreement
from firstpage.papers.study import page as page
from firstpage.papers.study.page import cell_table as cell_table
from firstpage.papers.study.registry import data_folder as data_folder
from firstpage.papers.study.registry import dataset_records as dataset_records
from firstpage.papers.study.registry import list_entries as list_entries
from firstpage.papers.study.run import Reproduction as Reproduction
from firstpage.papers.study.run import merge_reproductions as merge_reproductions
from firstpage.papers.study.run import reproduce as reproduce
from firstpage.papers.study.study import Protocol as Protocol
from firstpage.papers.theory.consistency import Consistency as Consistency
from firstpage.papers.theory.consistency import consistency as consistency
from firstpage.papers.theory.registry import DEFAULT_SAMPLES as DEFAULT_SAMPLES
from firstpage.papers.theory.registry import check_theorems as check_theorems
from firstpage.papers.theory.registry import checks_table as checks_table
from firstpage.papers.theory.registry import loss_page as loss_page
from firstpage.papers.theory.registry import loss_text as loss_text
from firstpage.papers.theory.registry import select_checks as select_checks
from firstpage.papers.theory.registry import theory_page as theory_page
from firstpage.papers.theory.registry import theory_text as theory_text
from firstpage.papers.theory.sensitivity import Sensitivity as Sensitivity
from firstpage.papers.theory.sensitivity import order_sensitive as order_sensitive
from firstpage.papers.theory.spaces import loss_forms as loss_forms
from firstpage.papers.theory.spaces import parse_loss as parse_loss

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "Consistency",
    "Reproduction",
    "Sensitivity",
    "check_theorems",
    "consistency",
    "order_sensitive",
    "reproduce",
]
