"""Labelling by people: who judges what, the judgments, how well they agree, what they cost."""
