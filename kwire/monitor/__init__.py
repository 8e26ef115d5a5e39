"""Live traffic for what watches it: metrics for Prometheus, spans for OpenTelemetry."""
