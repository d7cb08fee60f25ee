"""A server of S3 on the loopback, which can be told to fail: moto's, inside this process."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

BUCKET = "rows"
SECRET = "loopback-secret-word"  # no message may hold it
SLOW_SECONDS = 0.5
REFUSALS = {"500": "500 Internal Server Error", "503": "503 Slow Down", "403": "403 Forbidden"}
_numbers = count()


class S3Server:
    """Moto's application behind a queue of faults, each of which spoils one GET of an object."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Silent(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *_: Any) -> None:
                pass

        self.app = DomainDispatcherApplication(create_backend_app)
        self.faults: deque[str] = deque()
        self.n_gets = 0
        self.server = make_server(
            "127.0.0.1", 0, self.answer, threaded=True, request_handler=Silent
        )
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        is_get = environ["REQUEST_METHOD"] == "GET" and environ["PATH_INFO"].count("/") > 1
        self.n_gets += is_get
        fault = self.faults.popleft() if is_get and self.faults else ""
        if fault in REFUSALS:
            start(REFUSALS[fault], [("Content-Length", "0")])
            return []
        if fault == "slow":
            time.sleep(SLOW_SECONDS)
        answer = self.app(environ, start)
        return _cut(b"".join(answer)) if fault == "cut" else answer


def _cut(body: bytes) -> Iterator[bytes]:
    """Half of what was promised, and then the connection ends."""
    yield body[: len(body) // 2]
    raise ConnectionAbortedError


@cache
def server() -> S3Server:
    """The server of this process, with an empty bucket; the environment leads to it."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "loopback",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",  # faults are Mercer's to wait out
    }
    started = S3Server()
    os.environ["AWS_ENDPOINT_URL"] = started.url
    import s3fs

    s3fs.S3FileSystem.retries = 1
    files().mkdir(BUCKET)
    return started


def files() -> Any:
    import s3fs

    return s3fs.S3FileSystem()


def put(path: Path) -> str:
    """A file or folder in the bucket, under a name of its own."""
    server()
    place = f"{BUCKET}/{next(_numbers)}/{path.name}"
    if path.is_dir():
        for file in filter(Path.is_file, path.rglob("*")):
            files().pipe_file(f"{place}/{file.relative_to(path)}", file.read_bytes())
    else:
        files().pipe_file(place, path.read_bytes())
    return f"s3://{place}"


def new_url(name: str) -> str:
    """A URL at which there is nothing yet."""
    server()
    return f"s3://{BUCKET}/{next(_numbers)}/{name}"
