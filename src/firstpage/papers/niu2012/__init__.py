"""Niu, Guo, Lan, Cheng: Top-k Learning to Rank: Labeling, Ranking and Evaluation (SIGIR 2012).

Tables 1 to 3 with simulated assessors and with recorded votes; Tables 4 and 5 and the figures on
LETOR's data and on simulated queries, as those of the user study are not public.
"""
