"""Primitive types as Kafka writes them: varints, uuids and numbers of fixed size. Knows no schema."""
