"""Streams to exchanges: frames, which side is the broker, requests with their answers, what a client says of itself.

framing → conversation (one connection) → reader (a whole capture, in time order). exchange.py holds what comes out.
"""
