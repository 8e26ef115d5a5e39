"""Tables of captures on Spark: a data source, batch and streaming jobs. Needs the extra kwire[spark]."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import TYPE_CHECKING

from kwire.errors import NoSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NoSpark", "need_spark", "register"]


def need_spark(remote: bool = False) -> None:
    """Raises NoSpark when pyspark or Java is missing. remote: Spark runs elsewhere, behind Spark Connect."""
    if importlib.util.find_spec("pyspark") is None:
        raise NoSpark("kwire pipeline needs pyspark: pip install 'kwire[spark]'")
    if remote:
        if any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "pandas")):
            raise NoSpark("--remote needs what Spark Connect needs: pip install 'kwire[connect]'")
        return
    home = os.environ.get("JAVA_HOME")
    if not (home and os.path.exists(os.path.join(home, "bin", "java"))) and shutil.which("java") is None:
        raise NoSpark("kwire pipeline needs Java 17 or newer: there is no java on PATH, and JAVA_HOME names none")


def register(spark: SparkSession) -> None:
    """Registers spark.read.format("kwire") with a session, with the settings of file systems that it has now, and turns
    filter pushdown on."""
    need_spark(not hasattr(spark, "_jsparkSession"))
    from kwire.pipeline.source import KwireSource
    from kwire.pipeline.stores import settings_of

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # else Spark refuses sources that take filters
    # Spark makes sources in another process, where no session is
    spark.dataSource.register(type("KwireSource", (KwireSource,), {"hadoop": settings_of(spark)}))
