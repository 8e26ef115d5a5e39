"""Captures as tables: Arrow schemas, what fills them, Parquet and SQL. Needs the extra kwire[table].

schemas says what there is; fast makes columns of what the fast path read, partitions, groups and speakers of what its
bodies say, rows and facts make rows of single exchanges; build brings them together; writer puts them into files, query
asks them with DuckDB.
"""
