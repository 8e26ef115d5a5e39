"""A capture to share: what names people, hosts and data is replaced by other bytes of the same length.

names.py decides what stands for what, frames.py replaces it in a frame, packets.py puts frames back into packets, and
capture.py does it for a whole capture. What of a payload was not read and replaced comes out blank.
"""
