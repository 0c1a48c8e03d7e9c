"""Losses: functions of scores and truth.  They never see features."""
