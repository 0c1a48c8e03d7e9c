"""Zhou, Zha, Chang, Xue: Learning the Gain Values and Discount Factors of Discounted Cumulative
Gains (TKDE 2013).

All figures and the table; side-by-side judgments are simulated.
"""
