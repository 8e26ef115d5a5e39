"""Captures on Spark: data source, jobs, streams, reports."""
