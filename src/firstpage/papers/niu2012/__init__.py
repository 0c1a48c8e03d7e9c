"""Niu, Guo, Lan, Cheng: Top-k Learning to Rank: Labeling, Ranking and Evaluation (SIGIR 2012).

Tables 1 to 3 on simulated assessors and on recorded votes of people; Tables 4, 5 and the figures on
LETOR's data and on simulated queries in place of the user study's, which are not public."""
