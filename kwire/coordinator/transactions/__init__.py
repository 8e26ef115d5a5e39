"""Transactions: the coordinator's state machine, without I/O."""
