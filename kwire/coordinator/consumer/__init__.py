"""Consumer groups (KIP-848): members that heartbeat towards an assignment which the coordinator computes."""
