"""Streams groups (KIP-1071), without I/O: topologies, tasks, members and the group. Rules are those of Kafka 4.3."""
