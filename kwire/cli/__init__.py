"""The command line: one small file a command; whatever is heavy is imported inside the command."""
