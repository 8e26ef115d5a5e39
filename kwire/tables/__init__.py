"""Captures as tables: Arrow schemas, their rows, Parquet files and SQL. Needs the extra kwire[table].

columns.py lists every table's columns, schemas.py has them as Arrow schemas. exchange_columns.py and body_columns.py
make the columns of messages and exchanges; partitions.py, group_events.py and batch_headers.py those of the tables made
from bodies; rows.py makes the rows of connections and clients. build.py runs them over a capture, jobs.py in several
processes; writer.py writes files, query.py runs SQL with DuckDB.
"""
