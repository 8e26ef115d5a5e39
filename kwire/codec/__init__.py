"""Bytes to meaning and back: a message at one version is compiled once into a plan, and readers follow the plan."""
