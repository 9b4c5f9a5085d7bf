"""`epicortex watch`: the report as a live page, served on the loopback; it pauses and stops the run, too."""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli.parsing import Parser, UsageError, add_plugin, add_trust
from epicortex.text import shell

if TYPE_CHECKING:
    from epicortex.report.live import Server

_PORT: Final = 8750
_LARGEST: Final = 65535
_LOOK_AROUND: Final = 0.25
#: How long a server that `evolve` has started outlives the run and the last page that asks.
_PATIENCE: Final = 30.0


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex watch RUN [options]"
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of a run, also of one going on")
    parser.add_argument(
        "--port", metavar="N", type=int, help=f"where to serve the page ({_PORT}, or any that is free)"
    )
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where the built-in data sets are")
    parser.add_argument("--until-end", action="store_true", help="end when the run is over and nobody looks")
    add_plugin(parser)
    add_trust(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or until the page asks to stop."""
    from epicortex import registry
    from epicortex.errors import StorageError
    from epicortex.report.live import HOST, Watched

    folder: Path = arguments.folder
    if not arguments.until_end and not (folder / "config.toml").exists():
        raise StorageError(f"{folder} is no run: it has no config.toml")
    parts = registry.load(arguments.plugin).parts
    server = _server(Watched(folder, parts, arguments.data_dir, arguments.trust), arguments.port)
    port = server.server_address[1]
    print(f"watch  {server.address}", flush=True)
    print(f"       from another machine, first: ssh -L {port}:{HOST}:{port} THIS-MACHINE", flush=True)
    serving = threading.Thread(target=server.serve_forever, args=(_LOOK_AROUND,), daemon=True)
    serving.start()
    try:
        while not server.stopped.wait(_LOOK_AROUND) and not (arguments.until_end and _is_over(server)):
            pass
    except KeyboardInterrupt:
        return 0
    finally:
        server.shutdown()
        server.server_close()
    if server.stopped.is_set():
        print(f"stopped; {shell(['epicortex', 'resume', str(folder)])} goes on")
    return 0


def _is_over(server: Server) -> bool:
    """Whether no page has asked for a while, and no process is at work."""
    return time.monotonic() - server.watched.asked > _PATIENCE and not server.watched.control.running


def _server(watched: object, port: int | None) -> Server:
    from epicortex.errors import ConfigError
    from epicortex.report.live import Server, Watched

    assert isinstance(watched, Watched)
    if port is not None and not 0 <= port <= _LARGEST:
        raise UsageError(f"--port takes a number from 0 to {_LARGEST}")
    try:
        return Server(watched, _PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise ConfigError(f"port {port} cannot be used: {error.strerror}") from None
        return Server(watched)
