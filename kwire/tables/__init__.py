"""Captures as tables: Arrow schemas, what fills them, Parquet and SQL. Needs the extra kwire[table].

columns.py names every table's columns, schemas.py gives them as Arrow schemas. exchange_columns.py and body_columns.py
make the columns of messages and exchanges; partitions.py, group_events.py and batch_headers.py those of what bodies
say; rows.py makes the few rows of connections and clients. build.py runs them over a capture, jobs.py in several
processes; writer.py writes files, query.py asks them with DuckDB.
"""
