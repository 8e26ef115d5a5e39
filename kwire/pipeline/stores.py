"""Opens captures in place: local files, and those of object stores and HDFS that Arrow or fsspec open, by byte ranges.
Settings and credentials come from the Spark session, else from the environment.

A split carries its file system to the task that reads it; nothing is copied first. Files that Arrow cannot open are
left to Spark (binary_files.py).
"""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
from pyarrow import fs

from kwire.errors import FilesUnreachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3 = ("s3", "s3a", "s3n")
OTHERS = ("gs", "gcs", "abfs", "abfss", "hdfs")
WEB = "webhdfs"  # HDFS without libhdfs: fsspec opens it, where it is installed
ANYWHERE = "*?["  # characters of a pattern
AT_ONCE = 16  # parallel requests
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)

Setting = Callable[[str], str | None]  # value of a Hadoop setting, by name


class Stores:
    """The file systems of paths, cached. sizes, times: of listed files, bytes and ns since the epoch."""

    def __init__(self, setting: Setting = lambda _: None) -> None:
        self._setting = setting
        self._known: dict[str, fs.FileSystem | None] = {}
        self.sizes: dict[str, int] = {}
        self.times: dict[str, int] = {}

    def of(self, path: str) -> fs.FileSystem | None:
        """The file system of a path, rooted at the bucket or host; None for local paths and where Arrow has none."""
        scheme, found, rest = str(path).partition("://")
        scheme, root = scheme.lower(), f"{scheme}://{rest.partition('/')[0]}"
        if not found or scheme not in (*S3, *OTHERS, WEB):
            return None
        if root not in self._known:
            self._known[root] = self._opened(scheme, root)
        return self._known[root]

    def listed(self, path: str) -> list[str]:
        """The file, the visible files of a folder, or those that match a pattern. Raises FilesUnreachable."""
        store = self.of(path)
        assert store is not None
        try:
            found = list(_found(store, path))
        except (OSError, pa.ArrowException) as error:
            raise FilesUnreachable(f"{path}: {error}") from error
        if not found:
            raise FilesUnreachable(f"{path}: there are no captures")
        root = path[: len(path) - len(within(path))]
        names = {root + info.path: int(info.size) for info in found}
        self.sizes |= names
        self.times |= {root + info.path: int(info.mtime_ns or 0) for info in found}
        return sorted(names)

    def _opened(self, scheme: str, root: str) -> fs.FileSystem | None:
        try:
            if scheme in S3:
                bucket = root.rpartition("/")[2]
                return fs.SubTreeFileSystem(bucket, fs.S3FileSystem(**_s3(bucket, self._setting)))
            if scheme == WEB:
                from fsspec import core

                return fs.SubTreeFileSystem("/", fs.PyFileSystem(fs.FSSpecHandler(core.url_to_fs(root + "/")[0])))
            made, base = fs.FileSystem.from_uri(root + "/")
            return fs.SubTreeFileSystem(base, made)
        except (OSError, pa.ArrowException, AttributeError, ImportError):  # not reached, not built with it, not there
            return None


def of_session(spark: SparkSession) -> Stores:
    """Stores with the settings of a session, which may be Spark Connect."""
    if hasattr(spark, "_jsparkSession"):  # it also has what core-site.xml says
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        return Stores(hadoop.get)
    return Stores(lambda name: spark.conf.get(f"spark.hadoop.{name}", None) or spark.conf.get(name, None))


def settings_of(spark: SparkSession) -> dict[str, str]:
    """The settings of file systems that a session has, by their names in Hadoop."""
    if hasattr(spark, "_jsparkSession"):
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        return {f"fs.{name}": said for name, said in dict(hadoop.getPropsWithPrefix("fs.")).items() if said is not None}
    said = {name.removeprefix("spark.hadoop."): value for name, value in spark.conf.getAll.items()}
    return {name: value for name, value in said.items() if name.startswith("fs.")}


def opened(path: str, store: fs.FileSystem | None = None) -> BinaryIO:
    """The file, open for random access. Raises OSError."""
    found: BinaryIO = open(path, "rb") if store is None else store.open_input_file(within(path))  # noqa: SIM115
    return found


def size_of(file: BinaryIO) -> int:
    """The file's size in bytes; rewinds it."""
    size = file.seek(0, 2)
    file.seek(0)
    return size


def mapped(path: str, store: fs.FileSystem | None, size: int, ranges: Iterable[tuple[int, int]]) -> memoryview:
    """A view of the whole file; of a remote file only these ranges are read, the rest is zeros that take no memory.
    Raises OSError."""
    with opened(path, store) as file:
        if store is None:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        view = memoryview(mmap.mmap(-1, min(size, size_of(file)), flags=PRIVATE))
        for low, high in ranges:
            at, high = file.seek(low), min(high, len(view))
            while at < high and (count := file.readinto(view[at:high])):  # type: ignore[attr-defined]
                at += count
    return view


def brought(path: str, store: fs.FileSystem, folder: str | Path) -> str:
    """Copies a remote file into a new subfolder; returns its path. Raises OSError."""
    place = Path(folder, str(len(list(Path(folder).iterdir()))))
    place.mkdir()
    with store.open_input_stream(within(path)) as file, open(place / Path(path).name, "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 23)
    return str(place / Path(path).name)


def each(work: Callable[[str], Any], paths: Iterable[str]) -> list[Any]:
    """work(path) for each path, in order, AT_ONCE in parallel, since remote files are slow."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, paths))


def within(path: str) -> str:
    """A path below its bucket or host."""
    return path.partition("://")[2].partition("/")[2]


def _found(store: fs.FileSystem, path: str) -> Iterable[fs.FileInfo]:
    inner = within(path).rstrip("/")
    parts = inner.split("/")
    fixed = next((at for at, part in enumerate(parts) if any(mark in part for mark in ANYWHERE)), len(parts))
    info = store.get_file_info(inner)
    if info.type == fs.FileType.File:
        return [info]
    if fixed < len(parts):
        below = store.get_file_info(fs.FileSelector("/".join(parts[:fixed]), recursive=fixed < len(parts) - 1))
        below = [info for info in below if _like(info.path.split("/"), parts)]
    elif info.type == fs.FileType.Directory:
        below = store.get_file_info(fs.FileSelector(inner))
    else:
        raise FileNotFoundError("does not exist")
    return (info for info in below if info.type == fs.FileType.File and not info.base_name.startswith((".", "_")))


def _like(path: list[str], pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(map(fnmatchcase, path, pattern))


def _s3(bucket: str, setting: Setting) -> dict[str, Any]:
    """The arguments of S3FileSystem from the s3a settings."""

    def said(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    endpoint = said("endpoint") or ""
    scheme, _, host = endpoint.rpartition("://")
    plain = said("connection.ssl.enabled") == "false"
    out = {
        "access_key": said("access.key"), "secret_key": said("secret.key"), "session_token": said("session.token"),
        "anonymous": "Anonymous" in (said("aws.credentials.provider") or ""), "role_arn": said("assumed.role.arn"),
        "endpoint_override": host, "scheme": scheme or ("http" if plain else "https"),
        "region": said("endpoint.region") or ("us-east-1" if host else None),
        "force_virtual_addressing": bool(host) and said("path.style.access") == "false",
        "allow_delayed_open": True,  # what is small is written with one request
    }  # fmt: skip
    if out["region"] is None:
        out["region"] = fs.resolve_s3_region(bucket)
    return {name: value for name, value in out.items() if value}
