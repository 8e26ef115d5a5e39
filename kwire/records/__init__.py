"""Record batches (magic 2) and message sets (magic 0 and 1): what bytes of type records hold.

read.py         bytes to Batch and Record          annotate.py   bytes to spans
columns.py      a batch's records as numpy columns build.py      records to bytes
batch.py        the header of magic 2, checksums   legacy.py     messages of magic 0 and 1
compression.py  the four codecs, bounded
"""

from kwire.records.build import build, rebuilt
from kwire.records.read import Batch, Batches, Record, read_records

__all__ = ["Batch", "Batches", "Record", "build", "read_records", "rebuilt"]
