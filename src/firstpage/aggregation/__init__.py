"""Several rankings made into one: ballots, methods, Kemeny cost; `aggregate` joins them."""
