"""Machines as assessors: prompts, requests with limits, and calibration against people."""
