"""From streams to exchanges: frames, roles, pairing of requests and responses, the client's identity.

framing → conversation (a connection) → reader (a capture, in time order) → reading (files). exchange.py: the results.
"""
