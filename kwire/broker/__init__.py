"""The embedded broker: speaks Kafka to real clients, keeps everything in memory, and fails on purpose.

server.py listens; connection.py cuts bytes into frames and keeps answers in order; service.py takes a frame to the
API's handler in apis/ and through faults.py. cluster.py, log.py and groups.py are what handlers act on. All but
server.py and connection.py are free of sockets: time comes from a Clock, an answer may come later.
"""
