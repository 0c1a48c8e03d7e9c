from firstpage.papers.study.run import Reproduction as Reproduction
from firstpage.papers.study.run import reproduce as reproduce
from firstpage.papers.theory.consistency import Consistency as Consistency
from firstpage.papers.theory.consistency import consistency as consistency
from firstpage.papers.theory.registry import check_theorems as check_theorems
from firstpage.papers.theory.sensitivity import Sensitivity as Sensitivity
from firstpage.papers.theory.sensitivity import order_sensitive as order_sensitive
