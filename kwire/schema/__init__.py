"""What Kafka's messages are: the model, its text form, the registry, error codes, and the importer."""
