"""What travels inside fields: records, group protocols, SASL tokens, records of internal topics.

open.py knows which field holds what; the other files open one kind of content each. All take a finished span tree and
give one with more in it; content that is not what it should be stays bytes, with a note.
"""
