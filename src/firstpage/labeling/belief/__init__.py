"""Bayesian model of the answers: utilities, choice of questions, posterior ranks, consensus."""
