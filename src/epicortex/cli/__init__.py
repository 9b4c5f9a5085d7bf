"""The command line: finds the command, runs it, and turns what goes wrong into one line and an exit code.

Each command is a module beside this one with `add_arguments(parser)` and `run(arguments) -> int`. Only the
module of the command that was typed is imported, so that `--help` stays quick.
"""

from __future__ import annotations

import errno
import importlib
import os
import shlex
import signal
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from epicortex import machine
from epicortex.cli.parsing import Parser, UsageError, unknown
from epicortex.errors import EngineError, EpiCortexError, RunError, UnwritableError
from epicortex.text import clean

#: Every command: its module beside this file has its name. Adding one takes a line here and that module.
COMMANDS: Final[dict[str, str]] = {
    "evolve": "evolve networks for a data set or a task: a built-in name or a path",
    "resume": "go on where a run stopped, also with more generations",
    "show": "the champion, layer by layer, and how the run went",
    "report": "write a page about a run: RUN/report.html",
    "watch": "the report as a live page, from which a run can be paused and stopped",
    "export": "write the champion to a file: .onnx, .pt2, .safetensors or .c by its ending",
    "play": "show the champion at its task: an animation, RUN/play.gif",
    "evaluate": "how the champion does on labelled data",
    "predict": "classify images with the champion, or rows of tables",
    "reproduce": "run the paper's experiments, and set the results beside the published ones",
    "compare": "say how two sets of runs differ, and what cannot be concluded",
    "data": "list, get and check the built-in data sets",
}

OK: Final = 0
BUG: Final = 1
BAD_INPUT: Final = 2
CANNOT_WRITE: Final = 3
CANNOT_GO_ON: Final = 4
HUNG_UP: Final = 129
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

#: What a full, broken or read-only disk answers; it calls for making space, not for another command.
_DISK_TROUBLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


class _CtrlC:
    """Raises KeyboardInterrupt and remembers it: an import that it meets may make another error of it."""

    pressed = False

    def listen(self) -> None:
        """From now on."""
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, *_: object) -> None:
        self.pressed = True
        raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None, *, impatient: bool = False) -> int:
    """Run one command and give its exit code; if `impatient`, Ctrl-C is ours to handle once it begins."""
    ctrl_c = _CtrlC()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets a question mark, not an error.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv), ctrl_c.listen if impatient else None)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SystemExit as exit_:
        return int(exit_.code or OK)
    except BaseException as error:  # the last line of defence: a person sees one line, whatever happened
        return _told(error, stopped=ctrl_c.pressed or isinstance(error, KeyboardInterrupt))


def _told(error: BaseException, *, stopped: bool) -> int:
    """One line about what ended a command, and its exit code; whatever Ctrl-C led to is a stop."""
    if stopped:
        return _say("stopped", INTERRUPTED)
    if isinstance(error, EpiCortexError):
        return _say(str(error), _exit_code(error))
    if isinstance(error, OSError):
        return _system_trouble(error)
    if not isinstance(error, Exception):
        raise error
    return _bug(error)


def _dispatch(argv: list[str], begin: Callable[[], None] | None) -> int:
    parser = Parser(prog="epicortex", description="Evolves convolutional neural networks.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.usage = "epicortex COMMAND ..."
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items())
    parser.epilog = f"commands:\n{lines}\n\n'epicortex COMMAND --help' explains a command."
    if not argv:
        parser.print_help()
        return OK
    if argv[0].startswith("-"):
        if parser.parse(argv).version:
            print(f"epicortex {_version()} ({_arithmetic()})")
        return OK
    name = argv[0]
    if name not in COMMANDS:
        raise UsageError(unknown("command", name, COMMANDS) + "; see epicortex --help")
    command = importlib.import_module(f"epicortex.cli.{name}")
    own = Parser(prog=f"epicortex {name}", description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.")
    command.add_arguments(own)
    arguments = own.parse(argv[1:])
    arguments.command_line = shlex.join(["epicortex", *argv])
    if begin is not None:
        begin()
    return int(command.run(arguments))


def _arithmetic() -> str:
    """What networks are computed with here."""
    from epicortex import native

    if not native.available():
        return f"torch; {native.why_not()}"
    return f"native arithmetic, {native.instruction_set()}"


def _version() -> str:
    from importlib.metadata import version

    return version("epicortex")


def _exit_code(error: EpiCortexError) -> int:
    if isinstance(error, UnwritableError):
        return CANNOT_WRITE
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and cause not in causes:
        causes.append(cause)
    if any(isinstance(cause, OSError) and cause.errno in _DISK_TROUBLE for cause in causes):
        return CANNOT_WRITE
    return CANNOT_GO_ON if isinstance(error, RunError | EngineError) else BAD_INPUT


def _system_trouble(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return BROKEN_PIPE
    if error.errno == errno.ENAMETOOLONG:
        return _say("a path is longer than this system takes", BAD_INPUT)
    if error.errno not in _DISK_TROUBLE:
        return _bug(error)
    _discard_output()
    if error.errno == errno.EIO and error.filename is None and _has_terminal():
        return HUNG_UP
    where = f" {error.filename}" if error.filename else ""
    return _say(f"cannot write{where}: {error.strerror}", CANNOT_WRITE)


def _has_terminal() -> bool:
    """Whether a terminal was to be written to; one that was closed answers as a broken disk does."""
    return any(stream is not None and _is_device(stream) for stream in (sys.__stdout__, sys.__stderr__))


def _is_device(stream: TextIO) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _say(line: str, code: int) -> int:
    if sys.stderr is not None:
        with suppress(OSError):  # the terminal may be gone; the code still says it
            sys.stderr.write(f"epicortex: {clean(line)}\n")
    return code


def _bug(error: Exception) -> int:
    if machine.is_out_of_memory(error):
        return _say(f"there is too little memory for this: {error}".removesuffix(": "), CANNOT_GO_ON)
    if os.environ.get("EPICORTEX_DEBUG"):
        traceback.print_exception(error)
        return BUG
    kind = type(error).__name__
    if kind == "RuntimeError" and "can't start new thread" in str(error):
        return _say("no more threads can be started here; raise the limit (ulimit -u)", CANNOT_GO_ON)
    try:
        handle, name = tempfile.mkstemp(prefix="epicortex-bug-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return _say(f"this is a bug: {kind}: {error}; EPICORTEX_DEBUG=1 shows where it arose", BUG)
    return _say(f"this is a bug, please report it with {Path(name)}: {kind}: {error}", BUG)


def _discard_output() -> None:
    """Nobody reads on: keep the interpreter from failing again when it flushes at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
