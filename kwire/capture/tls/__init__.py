"""TLS by key log: from encrypted records to the bytes that travelled inside, and what a handshake tells.

layer.py stands behind the connections of capture/connections.py and puts decrypted pieces in the place of encrypted
ones, so that whoever reads a stream need not know. session.py follows one connection, direction.py one of its
directions: records.py cuts records, protection.py opens them with the keys that schedule.py derives from the secrets of
keylog.py. handshake.py and certificates.py read what is said in the open.
"""
