"""A forwarding proxy: clients reach every broker of a cluster through a port of this machine.

link.py cuts both directions into frames and holds only those that must change; rewrite.py changes them; routes.py knows
which port stands for which broker. Sockets are in connection.py and server.py alone.
"""
