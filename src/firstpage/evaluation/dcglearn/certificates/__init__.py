"""How far a verdict between systems depends on gains and discounts: witnesses and proofs."""
