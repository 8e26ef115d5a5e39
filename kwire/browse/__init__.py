"""kwire browse: a capture looked at in a terminal. Textual draws; a process beside it reads and decodes."""
