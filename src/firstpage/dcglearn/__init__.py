"""Learn the measure: gains and discounts of DCG from preferences over rankings."""
