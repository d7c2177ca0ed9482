"""``ksql``: a prompt, or one run of what is given (-e, -f, or standard input).

Source: docs/terminal.md.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from server.cli.client import Client, ServerFailure
from server.cli.commands import Exit, cli_version, find
from server.cli.error_text import render_trouble
from server.cli.options import definition, tls_of
from server.cli.repl import Repl
from server.cli.screen import Screen
from server.cli.session import OUTPUTS, Session, set_up
from server.cli.terminal import Terminal
from server.propertiesfile import parse_properties

DEFAULT_SERVER = "http://localhost:8088"
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status is 1 when a statement failed."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        properties = _properties(arguments)
        terminal = _terminal(arguments)
    except ValueError as error:
        parser.error(str(error))
    try:
        _set_up(terminal, properties)
        return 0 if _run(terminal, arguments) else 1
    except Exit:
        return 0
    except ServerFailure as failure:
        terminal.screen.error(render_trouble(failure))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        terminal.client.close()


def _run(terminal: Terminal, arguments: argparse.Namespace) -> bool:
    if arguments.execute is not None:
        return terminal.run(arguments.execute)
    if arguments.file is not None:
        return terminal.run_file(arguments.file, arguments.from_statement)
    if not sys.stdin.isatty():
        terminal.run_lines(sys.stdin)
        return True
    terminal.interactive = True
    Repl(terminal).run()
    return True


def _properties(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the properties of ``--config-file``; those of TLS become options that are not given.

    Raises: ValueError for a file that cannot be read, and for options of another product.
    """
    if arguments.confluent_api_key or arguments.confluent_api_secret or arguments.confluent_token:
        raise ValueError(
            "keys and tokens of Confluent Cloud mean nothing here: a server knows users "
            "(--user, --password) and certificates (--cert)"
        )
    if arguments.config_file is None:
        return {}
    try:
        properties = parse_properties(arguments.config_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"cannot read {arguments.config_file}: {why}") from error
    arguments.cacert = arguments.cacert or properties.get("ssl.truststore.location")
    arguments.cert = arguments.cert or properties.get("ssl.keystore.location")
    return {name: value for name, value in properties.items() if not name.startswith("ssl.")}


def _set_up(terminal: Terminal, properties: dict[str, str]) -> None:
    for refused in set_up(terminal.session, terminal.client, properties):
        terminal.screen.note(f"not set for this session: {refused}")


def _terminal(arguments: argparse.Namespace) -> Terminal:
    address = _address(arguments.url, arguments.server)
    session = Session(
        output=OUTPUTS[arguments.output.upper()],
        timing=arguments.timing,
        variables=dict(map(definition, arguments.define)),
        row_limit=arguments.query_row_limit,
        timeout_ms=arguments.query_timeout,
    )
    client = Client(address, _auth(arguments), tls_of(arguments.cacert, arguments.cert))
    return Terminal(client, session, Screen(), find)


def _address(positional: str | None, option: str | None) -> str:
    if positional is not None and option is not None:
        raise ValueError("the server's URL is given twice")
    address = positional or option or DEFAULT_SERVER
    url = urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"'{address}' is not a server's URL, such as {DEFAULT_SERVER}")
    return address


def _auth(arguments: argparse.Namespace) -> tuple[str, str] | None:
    if arguments.user is None:
        if arguments.password is not None:
            raise ValueError("a password needs a user: --user NAME")
        return None
    password = arguments.password
    return arguments.user, getpass.getpass("Password: ") if password is None else password


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksql",
        description="A terminal for a ksql server. "
        "Other commands: ksql server, ksql migrations, ksql state, ksql backup, ksql restore, "
        "ksql password, ksql test, ksql datagen, ksql demo, ksql demo-shop.",
    )
    add = parser.add_argument
    add("url", nargs="?", help=f"the server's URL (default {DEFAULT_SERVER})")
    add("--server", metavar="URL", help="the same as an option")
    add("--version", action="version", version=f"ksql {cli_version()}")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-e", "--execute", metavar="TEXT", help="run these statements and end")
    what.add_argument(
        "-f",
        "--file",
        type=Path,
        help="run the statements of a file (-: of standard input) and end",
    )
    add(
        "--from-statement", metavar="N", type=_count, default=1, help="begin the file with its N-th"
    )
    add(
        "-d",
        "--define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable for the session; may be repeated",
    )
    add(
        "--output",
        metavar="FORM",
        type=str.lower,
        choices=tuple(map(str.lower, OUTPUTS)),
        default="table",
        help="the form of answers: table (also called tabular), json or csv",
    )
    add("--timing", action="store_true", help="show how long each statement took")
    add("--query-row-limit", metavar="N", type=_count, help="end queries after so many rows")
    add("--query-timeout", metavar="MS", type=_count, help="end queries after so long")
    add("-u", "--user", help="for a server that asks who you are")
    add("-p", "--password", help="asked for if it is not given")
    add(
        "--config-file",
        metavar="FILE",
        type=Path,
        help="properties for the session, as SET has them; ssl.*.location for --cacert and --cert",
    )
    for option in ("--confluent-api-key", "--confluent-api-secret"):
        add(option, help=argparse.SUPPRESS)
    add("-t", "--confluent-token", "--token", dest="confluent_token", help=argparse.SUPPRESS)
    add("--cacert", metavar="FILE", help="certificates that the server's may be signed with (PEM)")
    add(
        "--cert",
        metavar="FILE",
        help="for a server that asks for yours: key and certificates (PEM)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
