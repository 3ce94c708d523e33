"""A local server with the endpoints of the Hugging Face hub that dataset clients use."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"

_INFO = re.compile(r"/api/datasets/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_TREE = re.compile(r"/api/datasets/([^/]+/[^/]+)/tree/([^/]+)/?(.*)")
_FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Serve ``root/owner/name`` folders as dataset repositories; yield the endpoint.

    A folder ``root/owner/name@commit`` holds an earlier commit of ``owner/name``.
    """

    def find_repository(name: str, revision: str | None) -> tuple[Path, str]:
        earlier = root / f"{name}@{revision}"
        return (earlier, str(revision)) if earlier.is_dir() else (root / name, COMMIT)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            match = _INFO.fullmatch(path) or _TREE.fullmatch(path) or _FILE.fullmatch(path)
            if match is None or not (root / match[1]).is_dir():
                self.send(404, headers={"X-Error-Code": "RepoNotFound"})
                return
            folder, commit = find_repository(match[1], match[2])
            if match[2] not in (None, "main", commit):
                self.send(404, headers={"X-Error-Code": "RevisionNotFound"})
            elif match.re is _INFO:
                self.send_json({"id": match[1], "sha": commit, "siblings": []})
            elif match.re is _TREE and (folder / match[3]).is_dir():
                entries = sorted((folder / match[3]).iterdir())
                self.send_json([describe(folder, entry) for entry in entries])
            elif match.re is _FILE and (folder / match[3]).is_file():
                body = (folder / match[3]).read_bytes()
                tag = f'"{hashlib.sha1(body).hexdigest()}"'
                self.send(200, body, {"ETag": tag, "X-Repo-Commit": commit})
            else:
                self.send(404, headers={"X-Error-Code": "EntryNotFound"})

        def send_json(self, value: object) -> None:
            self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def send(
            self, status: int, body: bytes = b"", headers: dict[str, str] | None = None
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def describe(repository: Path, entry: Path) -> dict[str, object]:
    path = entry.relative_to(repository).as_posix()
    if entry.is_dir():
        return {"type": "directory", "path": path, "oid": "0" * 40}
    body = entry.read_bytes()
    return {
        "type": "file",
        "path": path,
        "oid": hashlib.sha1(body).hexdigest(),
        "size": len(body),
    }
