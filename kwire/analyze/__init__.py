"""Exchanges to findings: what a capture says as a whole."""
