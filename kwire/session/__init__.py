"""Streams to exchanges: frames, which side is the broker, requests with their answers, what a client says of itself.

framing → connection (a connection) → reader (a capture, in time order) → reading (files). exchange.py: what results.
"""
