"""``ksql server``: the service and its HTTP interface as one process.

The sockets are bound first. While the service comes up, HTTP answers that the server is starting.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import importlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ksql.control.statements import FILE
from ksql.core import KsqlError, ServerSecret, Settings, freeze_objects, raise_limit
from ksql.http import Access, HttpServer, ServerThread
from server.app import create_app, create_metrics_app
from server.console import ENABLED
from server.context import AppContext
from server.headers import configured_headers
from server.listeners import (
    METRICS,
    REGISTRY,
    Listeners,
    open_doors,
    open_metrics,
    openness,
    registry_host,
)
from server.logs import FORMS, log_to_stderr
from server.notify import notify
from server.ownership import own_files
from server.pulse import Pulse
from server.settings import add_configuration, odd_properties, odd_variables, read_configuration
from server.shutdown import LastResort, status_of
from server.users import AUDIT, FileRenewal, Users, ignore_hangups

if TYPE_CHECKING:
    from server.service import ServerProcess

log = logging.getLogger(__name__)

Build = Callable[[Mapping[str, str]], "ServerProcess"]
DRAIN_S = 3.0  # how long running requests may take to end at a stop
GRACE_S = 1  # how long what was cut off then may take
_START_S = 5.0  # how long a start may continue after the signal that ends it
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def build_service(configuration: Mapping[str, str]) -> ServerProcess:
    """Return the real service; imported late, because it brings Spark."""
    service: ServerProcess = importlib.import_module("ksql.app").create_service(configuration)
    return service


def run_server(configuration: Mapping[str, str], build: Build = build_service) -> bool:
    """Run until SIGTERM or SIGINT; returns after a graceful stop.

    SIGHUP has users and certificates read again.

    Returns: whether it ended to be started again: another server has taken over from this one.
    Raises: StartError, before anything was started (a port in use) or after everything was stopped.
    """
    began = time.monotonic()
    ignore_hangups()
    raise_limit()  # before anything is opened, and for the processes that are started
    users = Users.of(Settings(configuration))
    doors = _open(configuration)
    sys.stderr.write("ksql is starting: Kafka, Spark and the queries take 10 seconds or more\n")
    last = LastResort()
    service = build(configuration)
    try:
        asyncio.run(_serve(service, doors, users, configuration, began, last))
    finally:
        last.disarm()
        for listeners in doors:
            listeners.close()
    return service.again


class _Doors(NamedTuple):
    """The listeners of everything, and those of /metrics and the probes."""

    rest: Listeners
    metrics: Listeners

    def urls(self, service: ServerProcess) -> dict[str, str]:
        """Return what is reached where besides REST, by name."""
        urls = {METRICS: ", ".join(self.metrics.urls)} if self.metrics.listeners else {}
        return {**urls, **service.addresses()}


def _open(configuration: Mapping[str, str]) -> _Doors:
    rest = open_doors(configuration)
    try:
        return _Doors(rest, open_metrics(configuration, rest))
    except BaseException:
        rest.close()
        raise


async def _serve(
    service: ServerProcess,
    doors: _Doors,
    users: Users | None,
    configuration: Mapping[str, str],
    began: float,
    last: LastResort,
) -> None:
    settings = Settings(configuration)
    context = AppContext(
        service, "INITIALIZING", settings.number("ksql.healthcheck.interval.ms") / 1000
    )
    loop = asyncio.get_running_loop()
    rest, scraped = _servers(context, doors, users, settings, Pulse(loop))
    known = _known(doors, users)
    reach = {
        "REST": doors.rest.hosts,
        METRICS: doors.metrics.hosts,
        REGISTRY: [registry_host(configuration)],
    }
    stop = asyncio.Event()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _stop_or_die, stop, last)
    loop.add_signal_handler(
        signal.SIGHUP, FileRenewal(users, lambda: (*(door.tls for door in doors), service.tls))
    )
    service.on_lost = lambda: loop.call_soon_threadsafe(stop.set)
    answering = asyncio.gather(*(server.serve() for server in rest))
    scraped.start("metrics")
    try:
        ready = functools.partial(_say_ready, service, doors, reach, known, began)
        await _run(service, context, stop, ready)
    finally:
        notify("STOPPING=1")
        context.shut()
        await context.drain(DRAIN_S)
        await _ended(rest, answering)
        await _in_thread(service.stop)
        await asyncio.to_thread(scraped.stop)  # probes see a stop until its end
        context.release()
        for number in (*_SIGNALS, signal.SIGHUP):
            loop.remove_signal_handler(number)
        ignore_hangups()


async def _ended(servers: Sequence[HttpServer], answering: asyncio.Future[list[None]]) -> None:
    for server in servers:
        server.end()
    await answering


def _servers(
    context: AppContext, doors: _Doors, users: Users | None, settings: Settings, pulse: Pulse
) -> tuple[list[HttpServer], ServerThread]:
    """Return the servers of REST, and those of /metrics, which know no users.

    The latter have a thread of their own, so nothing that REST does delays a probe.
    """
    headers = configured_headers(settings)
    app = create_app(
        context=context,
        access=Access.of(settings, doors.rest.hosts),
        users=users,
        secret=ServerSecret.of(settings),
        websocket_s=settings.number("ksql.websocket.connection.max.timeout.ms") / 1000,
        headless=bool(settings.text(FILE)),
        with_console=settings.flag(ENABLED),
        headers=headers,
        audited=settings.text(AUDIT).lower() == "statements",
    )
    scraped = create_metrics_app(context, Access.of(settings, doors.metrics.hosts), headers, pulse)
    return (
        list(doors.rest.servers(app, GRACE_S, settings)),
        ServerThread(doors.metrics.servers(scraped, GRACE_S, settings)),
    )


def _known(doors: _Doors, users: Users | None) -> list[str]:
    """Return the names of the listeners that ask clients who they are."""
    by_name = {
        "REST": users is not None or doors.rest.ask_certificates,
        METRICS: doors.metrics.ask_certificates,
    }
    return [name for name, asks in by_name.items() if asks]


def _stop_or_die(stop: asyncio.Event, last: LastResort) -> None:
    """Stop gracefully at the first signal; the next one is from somebody who cannot wait."""
    if stop.is_set():
        os._exit(130)
    last.arm()
    stop.set()


def _in_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Run it in a thread that nobody has to wait for when the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - raised where it is awaited
            error = problem
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name=work.__name__, daemon=True).start()
    return done


async def _run(
    service: ServerProcess, context: AppContext, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Start the service and wait for the stop; one during the start waits a while for its end."""
    starting = _in_thread(service.start)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if stop.is_set():
        await asyncio.wait({starting}, timeout=_START_S)
        if starting.done() and starting.exception() is not None:
            log.info("start_given_up", extra={"reason": str(starting.exception())})
        return
    await starting
    freeze_objects()
    context.state = "READY"
    await asyncio.to_thread(ready)
    await stop.wait()
    await _in_thread(service.leave)


def _say_ready(
    service: ServerProcess,
    doors: _Doors,
    reach: Mapping[str, Sequence[str]],
    known: Sequence[str],
    began: float,
) -> None:
    info = service.info()
    seconds = time.monotonic() - began
    sys.stdout.write(
        f"ksql {info.version} is ready at {', '.join(doors.rest.urls)}"
        f" (service id {info.ksql_service_id}, started in {seconds:.1f} s)\n"
    )
    places = doors.urls(service)
    for name, url in places.items():
        sys.stdout.write(f"{name} at {url}\n")
    if service.headless:
        sys.stdout.write(f"headless: {service.headless}; clients can send no statements\n")
    notify("READY=1")
    for line in openness({"REST", *places}, reach, known):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksql server", description="Run the server until a signal stops it."
    )
    add_configuration(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="the same as --config FILE"
    )
    parser.add_argument(
        "--queries-file",
        metavar="FILE",
        help="statements to run at the start; clients can then send none",
    )
    parser.add_argument(
        "--log-level",
        default="warning",
        choices=("debug", "info", "warning", "error"),
        help="how much goes to standard error (default: warning)",
    )
    parser.add_argument(
        "--log-format",
        default="text",
        choices=FORMS,
        help="the form of events on standard error (default: text)",
    )
    return parser


def _configuration(arguments: argparse.Namespace) -> dict[str, str]:
    options = list(arguments.override)
    if arguments.queries_file is not None:
        options.append(f"{FILE}={arguments.queries_file}")
    return read_configuration(arguments.config or arguments.file, options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status is 1 or 78 when the server could not start.

    78 says that starting it again does not help: an operator is needed.
    """
    parser = _arguments()
    arguments = parser.parse_args(argv)
    if arguments.file is not None and arguments.config is not None:
        parser.error("the configuration file is given twice")
    formatter = log_to_stderr(arguments.log_level, arguments.log_format)
    try:
        configuration = _configuration(arguments)
        formatter.service = Settings(configuration).text("ksql.service.id")
        for odd in (*odd_variables(os.environ), *odd_properties(configuration)):
            sys.stderr.write(f"ksql server: warning: {odd}\n")
        with own_files(Settings(configuration)):
            again = run_server(configuration)
        if again:
            sys.stderr.write("ksql server: another server has taken over; this one restarts\n")
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
    except KsqlError as error:
        sys.stderr.write(f"ksql server: {error.text()}\n")
        return status_of(error)
    return 0
