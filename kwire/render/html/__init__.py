"""HTML: the one frame of all pages, their style, and markup in which text is inert unless it says otherwise."""
