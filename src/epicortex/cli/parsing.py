"""Options: a parser that says what is wrong in one line, and options made from the config's own fields.

A setting given on the command line is only collected here; `config` checks it. The parsing is argparse's;
ours are the messages and the options of every setting.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from epicortex.errors import EpiCortexError
from epicortex.text import did_you_mean

_HELP_WIDTH: Final = 28


class UsageError(EpiCortexError):
    """A command was typed in a way that cannot be understood."""


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """One line that refuses a name and says which was likely meant.

    >>> unknown("command", "evolv", ["evolve", "show"])
    "there is no command 'evolv' (did you mean evolve?)"
    """
    return f"there is no {kind} {name!r}{did_you_mean(name, names)}"


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` where argparse would print and exit."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs, allow_abbrev=False, add_help=False, formatter_class=_Formatter)
        self.add_argument("-h", "--help", action="help", help="show this help and exit")

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; options may be written with _ for -."""
        # Intermixed: an option may stand between or before the positional words.
        return self.parse_intermixed_args(self._checked(argv))

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing."""
        message = re.sub(
            r"^argument (\S+?)(/\S+)?: expected (one|at least one) argument$", r"\1 needs a value", message
        )
        message = re.sub(r"^the following arguments are required: (.+)$", r"\1 is missing", message)
        raise UsageError(f"{message}; see {self.prog} --help")

    def _checked(self, argv: Sequence[str]) -> list[str]:
        """Refuse unknown options first: argparse would take their values for something else."""
        checked: list[str] = []
        for index, word in enumerate(argv):
            if word == "--":
                return checked + list(argv[index:])
            if word.startswith("-") and word != "-" and not re.fullmatch(r"-[\d.].*", word):
                option, equals, value = word.partition("=")
                option = option.replace("_", "-")
                if option not in self._option_string_actions:
                    self.error(unknown("option", option, self._near(option)))
                checked.append(option + equals + value)
            else:
                checked.append(word)
        return checked

    def _near(self, option: str) -> Iterable[str]:
        """The options that an unknown one may stand for: a setting of that name, wherever it is, or any."""
        name = option.rpartition(".")[2]
        same = [known for known in self._option_string_actions if known.endswith(f".{name}")]
        return same or self._option_string_actions


def add_plugin(parser: Parser) -> None:
    """The option that names a person's own parts."""
    parser.add_argument(
        "--plugin",
        metavar="FILE.py",
        type=Path,
        action="append",
        default=[],
        help="run this Python file, and use the operators, functions and other parts it defines",
    )


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_WIDTH)


class SettingAction(argparse.Action):
    """Collects a setting by its dotted name, with the option it was given by."""

    full_help: str | None = None
    """What `--help-all` says about it, up to its default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the last value given."""
        given: dict[str, tuple[str, str]] = {**getattr(namespace, "given", {})}
        given[self.dest] = (option_string or "", self.const if self.nargs == 0 else str(values))
        namespace.given = given


class HelpAllAction(argparse.Action):
    """Prints the help with every setting."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Print and exit."""
        from epicortex.config import fields, resolving

        # What `resume` does not change is as the run has it.
        config = resolving.resolve() if self.const else None
        for action in parser._actions:
            if isinstance(action, SettingAction) and action.full_help:
                own = None if config is None else fields.shown(fields.value_of(config, action.dest))
                default = "" if own is None else f"; default {own}"
                action.help = f"{action.full_help}{default})".replace("%", "%%")
        parser.print_help()
        parser.exit()


def add_trust(parser: argparse._ActionsContainer) -> None:
    """The option that takes a run of somebody else at its word."""
    parser.add_argument(
        "--trust", action="store_true", help="read what the files of a run that was sent to you name"
    )


def add_short(parser: argparse._ActionsContainer, options: Mapping[str, tuple[str, str]]) -> None:
    """Short options for settings: option -> (dotted name, help)."""
    from epicortex.config import fields

    kinds = {int: "N", float: "X"}
    for option, (name, text) in options.items():
        parser.add_argument(
            option,
            dest=name,
            action=SettingAction,
            default=argparse.SUPPRESS,
            metavar=kinds.get(fields.settings()[name].type, "NAME"),
            help=text,
        )


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str] | None = None) -> None:
    """An option for every setting, and `--help-all`, which lists them (or only those named)."""
    from epicortex.config import fields

    known = fields.settings()
    listed = set(known if names is None else names)
    parser.add_argument(
        "--help-all",
        action=HelpAllAction,
        nargs=0,
        const=names is None,
        help="show every setting too, and exit",
    )
    sections = dict.fromkeys(setting.section for setting in known.values() if setting.section)
    groups = {section: parser.add_argument_group(f"settings of {section}") for section in sections}
    for name, setting in known.items():
        if not setting.section:  # the option that everyone needs is its own name already
            continue
        action = groups[setting.section].add_argument(
            setting.option,
            dest=name,
            action=SettingAction,
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=argparse.SUPPRESS,
        )
        if name in listed and isinstance(action, SettingAction):
            action.full_help = f"{setting.description} ({setting.allowed}"


def settings_given(arguments: argparse.Namespace) -> tuple[dict[str, object], dict[str, str]]:
    """The settings that were given, as values by dotted name, and the short options they were given by."""
    from epicortex.config import fields

    known = fields.settings()
    given: dict[str, tuple[str, str]] = getattr(arguments, "given", {})
    values = {name: fields.from_text(known[name], text) for name, (_, text) in given.items()}
    called = {name: option for name, (option, _) in given.items() if option != known[name].option}
    return values, called
