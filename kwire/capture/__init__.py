"""Packets to streams: reads captures and interfaces, takes links, IP and TCP off, puts each direction's bytes in order.

source → pcap, pcapng, live → links → ip → tcp → streams. Packets travel in blocks, as numpy columns over the file's own
bytes; only what is out of the ordinary is looked at packet by packet.
"""
