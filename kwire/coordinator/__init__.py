"""The group coordinator as a state machine without I/O: requests and times go in, answers and events come out.

Rules are those of Kafka's own coordinator; each module names the classes that it follows.
"""
