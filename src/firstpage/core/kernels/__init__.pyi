from collections.abc import Callable

from firstpage.core.kernels import click_models as click_models
from firstpage.core.kernels import formatting as formatting
from firstpage.core.kernels import fusion as fusion
from firstpage.core.kernels import scoring as scoring
from firstpage.core.kernels import sorting as sorting
from firstpage.core.kernels import spelling as spelling
from firstpage.core.kernels import text as text
from firstpage.core.kernels import vectors as vectors
from firstpage.core.kernels.formatting import find_separator as find_separator
from firstpage.core.kernels.fusion import base_points as base_points
from firstpage.core.kernels.fusion import merge_ids as merge_ids
from firstpage.core.kernels.fusion import renumber as renumber
from firstpage.core.kernels.fusion import tabulate_runs as tabulate_runs
from firstpage.core.kernels.hashing import MIX1 as MIX1
from firstpage.core.kernels.hashing import MIX2 as MIX2
from firstpage.core.kernels.hashing import S27 as S27
from firstpage.core.kernels.hashing import S30 as S30
from firstpage.core.kernels.hashing import S31 as S31
from firstpage.core.kernels.hashing import STEP as STEP
from firstpage.core.kernels.hashing import gather_bytes as gather_bytes
from firstpage.core.kernels.hashing import hash_ids as hash_ids
from firstpage.core.kernels.hashing import join_ids as join_ids
from firstpage.core.kernels.hashing import random_words as random_words
from firstpage.core.kernels.scoring import forest_scores as forest_scores
from firstpage.core.kernels.scoring import forest_scores_missing as forest_scores_missing
from firstpage.core.kernels.scoring import row_products as row_products
from firstpage.core.kernels.scoring import step_scores as step_scores
from firstpage.core.kernels.scoring import zero_if_finite as zero_if_finite
from firstpage.core.kernels.selection import rank_grades as rank_grades
from firstpage.core.kernels.selection import select_top as select_top
from firstpage.core.kernels.selection import top_labels as top_labels
from firstpage.core.kernels.ties import number_ties as number_ties
from firstpage.core.kernels.ties import order_ties_by_id as order_ties_by_id
from firstpage.core.kernels.ties import order_ties_by_key as order_ties_by_key
from firstpage.core.kernels.ties import tie_blocks as tie_blocks

on_compile: Callable[[], None] | None
