"""The report's page, served on the loopback beside a run: it follows the run, and can pause and stop it.

Every address begins with a token, which only who sees the command's output knows. The page is made anew when
a generation is complete, but making it takes no more than a tenth of the time.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal

from epicortex.ecosystem.stopping import Progress, limit_reached
from epicortex.errors import EpiCortexError
from epicortex.registry import Parts
from epicortex.report.control import Control
from epicortex.report.material import read
from epicortex.report.page import render
from epicortex.run.record import read_run
from epicortex.text import one_line, plural

HOST: Final = "127.0.0.1"
#: Making the page may take this part of a processor's time.
_PART: Final = 0.1
_WAITING: Final = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>EpiCortex</title><p>The run has not begun yet; this page looks again by itself.</p>"""


@dataclass
class Watched:
    """A run that is watched: what its page shows, and how it stands."""

    run: Path
    parts: Parts | None = None
    data_dir: Path | None = None
    trust: bool = False
    control: Control = field(init=False)
    asked: float = field(default_factory=time.monotonic)
    """When a page last asked for news."""

    def __post_init__(self) -> None:
        self.control = Control(self.run)
        self._page: tuple[str, str] | None = None
        self._not_before = 0.0
        self._making = threading.Lock()

    def state(self) -> dict[str, str]:
        """How the run stands, in words and for the page's script."""
        self.asked = time.monotonic()
        try:
            record = read_run(self.run)
        except EpiCortexError as error:
            return {"state": "waiting", "words": one_line(str(error)), "version": "", "trouble": ""}
        done, config = len(record.history), record.config
        ended = limit_reached(Progress.of_history(record.history, config, record.plan), config.evolution)
        running = self.control.running
        state: Literal["running", "ended", "paused"] = (
            "running" if running else "ended" if ended else "paused"
        )
        words = {"running": "Running", "ended": "The run has ended", "paused": "Paused"}[state]
        so_far = f"{words}: {plural(done, 'generation')}" + (" so far" if state != "ended" else "")
        version = f"{done} {state == 'ended'}"
        return {"state": state, "words": so_far, "version": version, "trouble": self.control.trouble}

    def page(self) -> str:
        """The page as it is now; while the run goes on it may be a little older."""
        version = self.state()["version"]
        if not version:
            return _WAITING
        with self._making:
            fresh = self._page is not None and self._page[0] == version
            early = self._page is not None and time.monotonic() < self._not_before
            if self._page is None or not (fresh or (early and not version.endswith("True"))):
                began = time.monotonic()
                self._page = version, self._made(version)
                took = time.monotonic() - began
                self._not_before = time.monotonic() + took / _PART
            return self._page[1]

    def _made(self, version: str) -> str:
        ended = version.endswith("True")
        material = read(self.run, data_dir=self.data_dir, parts=self.parts, trust=self.trust, test=ended)
        return _marked(render(material, live=True), version)

    def version(self) -> str:
        """What the page shows, or would show if it were made now."""
        shown = self._page[0] if self._page and time.monotonic() < self._not_before else None
        current = self.state()
        return shown if shown is not None and current["state"] != "ended" else current["version"]


def _marked(page: str, version: str) -> str:
    """The page with what it shows noted in it, so that its script can tell news."""
    return page.replace('<div class="watching"', f'<div class="watching" data-version="{version}"', 1)


class Server(ThreadingHTTPServer):
    """Serves one run on the loopback until it is shut down."""

    daemon_threads = True

    def __init__(self, watched: Watched, port: int = 0) -> None:
        self.watched = watched
        self.token = secrets.token_urlsafe(24)
        self.stopped = threading.Event()
        """Set when the page has asked to stop."""
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, watched = self._path(), self.server.watched
        try:
            if path == "":
                self._answer(200, watched.page(), "text/html")
            elif path == "state":
                self._json({**watched.state(), "version": watched.version()})
            else:
                self._answer(404, "not found", "text/plain")
        except EpiCortexError as error:
            self._answer(500, one_line(str(error), 400), "text/plain")

    def do_POST(self) -> None:
        path, control = self._path(), self.server.watched.control
        self.rfile.read(min(10_000, int(self.headers.get("Content-Length") or 0)))
        try:
            if path == "continue":
                control.resume()
            elif path in ("pause", "stop"):
                control.pause()
            else:
                self._answer(404, "not found", "text/plain")
                return
        except EpiCortexError as error:
            self._json({"refused": one_line(str(error), 400)})
            return
        self._json({"words": "Stopped. This page stays as it is."})
        if path == "stop":
            self.server.stopped.set()

    def log_message(self, *_: Any) -> None:
        """Requests are not written to the terminal, in which a run may be shown."""

    def _path(self) -> str | None:
        """What is asked for, behind the token; None without it."""
        _, token, *rest = (*self.path.split("?")[0].split("/"), "")
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        return "/".join(rest).strip("/") if known else None

    def _json(self, value: dict[str, str]) -> None:
        self._answer(200, json.dumps(value), "application/json")

    def _answer(self, code: int, text: str, kind: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)
