"""The papers: experiments, printed values and theorems of each, run again."""
