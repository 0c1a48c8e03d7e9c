"""Scorers: functions from features to scores, and back-propagation of score gradients."""
