"""An S3 server on loopback (moto), which counts what it is asked for."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SECRETS = ("kwire", "nosecret")  # access key and secret key: the server takes any


class S3Server:
    """asked: how often, by method and what it was for: an object, a part of one, a list, an upload."""

    def __init__(self, port: int) -> None:
        import boto3  # type: ignore[import-untyped]

        self.endpoint = f"http://127.0.0.1:{port}"
        self.asked: Counter[str] = Counter()
        self._client = boto3.client(
            "s3", endpoint_url=self.endpoint, aws_access_key_id=SECRETS[0], aws_secret_access_key=SECRETS[1],
            region_name="us-east-1",
        )  # fmt: skip

    @property
    def settings(self) -> dict[str, str]:
        """Hadoop's settings, without which nothing here is found."""
        return {
            "fs.s3a.endpoint": self.endpoint, "fs.s3a.access.key": SECRETS[0], "fs.s3a.secret.key": SECRETS[1],
            "fs.s3a.path.style.access": "true", "fs.s3a.endpoint.region": "us-east-1",
        }  # fmt: skip

    def put(self, bucket: str, *paths: Path) -> list[str]:
        """Puts files into a new bucket; returns their addresses."""
        self._client.create_bucket(Bucket=bucket)
        for path in paths:
            self._client.put_object(Bucket=bucket, Key=f"in/{path.name}", Body=path.read_bytes())
        self.asked.clear()
        return [f"s3a://{bucket}/in/{path.name}" for path in paths]

    def put_folder(self, bucket: str, folder: Path) -> str:
        """Puts a folder into a new bucket, as lake; returns its address."""
        self._client.create_bucket(Bucket=bucket)
        for path in folder.rglob("*.parquet"):
            self._client.put_object(Bucket=bucket, Key=f"lake/{path.relative_to(folder)}", Body=path.read_bytes())
        return f"s3://{bucket}/lake"

    @property
    def environment(self) -> dict[str, str]:
        """What Arrow reads of the environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": SECRETS[0], "AWS_SECRET_ACCESS_KEY": SECRETS[1],
            "AWS_REGION": "us-east-1",
        }  # fmt: skip

    def filesystem(self, bucket: str) -> Any:
        """The bucket as Arrow's file system."""
        from pyarrow import fs

        made = fs.S3FileSystem(
            access_key=SECRETS[0], secret_key=SECRETS[1], endpoint_override=self.endpoint, region="us-east-1"
        )  # fmt: skip
        return fs.SubTreeFileSystem(bucket, made)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Skips where moto is not installed."""
    for needed in ("moto", "flask", "boto3"):
        pytest.importorskip(needed, reason="the S3 server on loopback is moto's")
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    inner = DomainDispatcherApplication(create_backend_app)

    def counting(environ: dict[str, Any], answer: Callable[..., Any]) -> Any:
        made.asked[_what(environ)] += 1
        return inner(environ, answer)

    server = make_server("127.0.0.1", 0, counting, threaded=True, request_handler=MotoRequestHandler)
    made = S3Server(server.port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()


def _what(environ: dict[str, Any]) -> str:
    """A request's name: GET, GET range, GET list and so on."""
    query, method = environ.get("QUERY_STRING", ""), environ["REQUEST_METHOD"]
    kinds = {
        "range": "HTTP_RANGE" in environ,
        "list": method == "GET" and ("prefix=" in query or "list-type=" in query),
        "upload": "uploads" in query or "uploadId=" in query,
        "copy": "HTTP_X_AMZ_COPY_SOURCE" in environ,
        "many": method == "POST" and "delete" in query,
    }
    return " ".join([method, *(kind for kind, so in kinds.items() if so)])
