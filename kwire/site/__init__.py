"""The reference and the guide as static pages, with a search and a playground that work in the browser alone.

Pages stand on what render/ makes for the terminal: the sections of wire diagrams, decoded examples, words and facts.
"""
