from firstpage.papers.theory.consistency import consistency as consistency
from firstpage.papers.theory.sensitivity import order_sensitive as order_sensitive
