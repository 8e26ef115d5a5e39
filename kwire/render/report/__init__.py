"""The report of captures: one HTML page that holds what the other commands say, and leads to them."""
