"""Share groups (KIP-932), without I/O: the group and its members, the records in flight of each partition, share
sessions, and the state that is kept of them. Rules are those of Kafka 4.3."""
