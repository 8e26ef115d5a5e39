"""A consumer's start, lived through step by step, for `kwire walk`."""
