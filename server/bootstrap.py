"""Sets the project up: Python and Java are checked first, then the environment, packages and jars.

``python3 server/bootstrap.py``, or ``make setup``. Standard library only, and no syntax newer than
Python 3.8: an old interpreter must get as far as the message that refuses it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "setup.stamp"
LOG = VENV / "setup.log"
OLDEST_PYTHON = (3, 11)
_NEWER = ("python3.14", "python3.13", "python3.12", "python3.11", "python3")
_LOCKS = ("requirements/build.lock", "requirements/dev.lock")
_BUILT_FROM = ("pyproject.toml", *_LOCKS)
_TAIL_LINES = 15
_REPORT_EVERY = 10


class SetupError(Exception):
    """The set-up cannot continue; the text gives the reason and a remedy."""


def main() -> int:
    """Do what is missing and return 0; print what is wrong and return 1."""
    compiling: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    sys.path[0] = str(ROOT)  # instead of server/, whose modules could hide others
    try:
        reexecute_if_old()
        java = check_java()
        check_venv_module()
        if not packages_are_current():
            say(f"Python {sys.version.split()[0]}, {java}")
            install_packages()
            compiling = compile_packages()
        with compiling:
            fetch_jars()
            archive_classes()
    except SetupError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted. Run it again: what is complete is kept.\n")
        return 130
    return 0


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"setup: {text}", flush=True)


# --- what must be there before anything is downloaded -------------------------


def reexecute_if_old() -> None:
    """Restart under a newer Python of this machine if this one is too old.

    Raises: SetupError when there is none.
    """
    if sys.version_info >= OLDEST_PYTHON:
        return
    for name in _NEWER:
        path = shutil.which(name)
        if path and _is_new_enough(path):
            os.execv(path, [path, *sys.argv])  # noqa: S606 the same script again
    have = sys.version.split()[0]
    raise SetupError(
        f"Python 3.11 or newer is needed, this is {have}.\n"
        "Install it (for example: apt-get install python3.11, dnf install python3.12, "
        "brew install python@3.13)\nand run: make setup PYTHON=python3.13"
    )


def _is_new_enough(python: str) -> bool:
    test = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    done = subprocess.run([python, "-c", test], capture_output=True, check=False)  # noqa: S603
    return done.returncode == 0


def check_java() -> str:
    """Return the Java that will be used, in words.

    Raises: SetupError without one that is new enough, with the command that installs one.
    """
    from ksql.core import StartError  # noqa: PLC0415 needs the Python checked above
    from ksql.core.process import find_java  # noqa: PLC0415 likewise

    try:
        java = find_java()
    except StartError as error:
        raise SetupError(error.text()) from error
    return f"Java {java.version} ({java.path})"


def check_venv_module() -> None:
    """Check for what makes environments: some systems ship Python without it.

    Raises: SetupError with the package to install.
    """
    from importlib.util import find_spec  # noqa: PLC0415 next to its only use

    if find_spec("ensurepip") and find_spec("venv"):
        return
    from ksql.core.process import as_admin  # noqa: PLC0415 needs the Python checked above

    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    raise SetupError(
        "this Python cannot make virtual environments: its modules venv and ensurepip are missing."
        f"\nInstall them (Debian, Ubuntu): {as_admin(f'apt-get install {package}')}"
    )


# --- the environment and its packages -----------------------------------------


def packages_are_current() -> bool:
    """Return whether the last complete set-up had these very files, this Python and this place."""
    try:
        return STAMP.read_text(encoding="utf-8") == fingerprint() and venv_python().exists()
    except OSError:
        return False


def fingerprint() -> str:
    """Return a digest of everything that the environment is made from."""
    digest = hashlib.sha256(f"{ROOT}\n{sys.version_info[:2]}\n".encode())
    for name in _BUILT_FROM:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def venv_python() -> Path:
    """Return the environment's interpreter."""
    return VENV / "bin" / "python"


def install_packages() -> None:
    """Make the environment and install the locked packages, each verified by its hash.

    Raises: SetupError with the last lines of pip's output.
    """
    STAMP.unlink(missing_ok=True)
    if not _venv_fits():
        say(f"making {VENV.name} ...")
        _run("making the environment", [sys.executable, "-m", "venv", "--clear", str(VENV)])
    LOG.write_text("", encoding="utf-8")
    for lock in _LOCKS:
        total = sum("==" in line for line in (ROOT / lock).read_text().splitlines())
        _pip(f"packages of {lock}", total, [*_LOCKED, "-r", lock])
    _pip("the project itself", 1, ["--no-deps", "--no-build-isolation", *_EDITABLE])
    _run("checking the packages", [str(venv_python()), "-m", "pip", "check"])
    STAMP.write_text(fingerprint(), encoding="utf-8")
    say("packages installed")


def compile_packages() -> subprocess.Popen[bytes]:
    """Begin to compile the modules; pip would do so on one core while the other has nothing to do.

    A user who may not write there needs them compiled. Some packages have templates, which do not
    compile; pip does not mind them either.
    """
    command = [str(venv_python()), "-m", "compileall", "-q", str(VENV / "lib")]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet)  # noqa: S603 our own interpreter


# The locks name every package. pip must not resolve: for an extra (`coverage[toml]`) it takes
# the newest release, which no lock can know; `pip check` says whether a package is missing.
_LOCKED = ("--require-hashes", "--no-deps", "--no-build-isolation", "--no-compile")
# A plain path entry: new packages and tools that follow such entries see the sources at once.
_EDITABLE = ("--config-settings", "editable_mode=compat", "-e", ".")


def _venv_fits() -> bool:
    """Return whether there is an environment of this Python version that works."""
    test = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    try:
        done = subprocess.run(  # noqa: S603 the environment's own interpreter
            [str(venv_python()), "-c", test], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def _pip(what: str, total: int, arguments: list[str]) -> None:
    """Run ``pip install``; show how far it is instead of its hundreds of lines."""
    command = [str(venv_python()), "-m", "pip", "install", "--disable-pip-version-check"]
    progress = _Progress(what, total)
    with subprocess.Popen(  # noqa: S603 our own pip
        [*command, "--progress-bar", "off", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as pip:
        assert pip.stdout is not None  # noqa: S101 it was asked for
        with LOG.open("a", encoding="utf-8") as log:
            for line in pip.stdout:
                log.write(line)
                progress.see(line)
    progress.end()
    if pip.returncode:
        tail = "\n".join(LOG.read_text(encoding="utf-8").splitlines()[-_TAIL_LINES:])
        raise SetupError(f"pip could not install {what}:\n{tail}\nThe whole output is in {LOG}.")


class _Progress:
    """One line that is rewritten on a terminal; a line now and then elsewhere."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._live = sys.stdout.isatty()

    def see(self, line: str) -> None:
        """Take a line of pip's output."""
        words = line.split()
        if words[:1] == ["Collecting"] or words[:3] == ["Requirement", "already", "satisfied:"]:
            self._done += 1
            if self._live or self._done % _REPORT_EVERY == 1:
                self._show(words[1 if words[0] == "Collecting" else 3].split("=")[0])
        elif words[:3] == ["Building", "wheel", "for"] and words[-1] == "started":
            self._show(f"building {words[3]}")
        elif words[:2] == ["Installing", "collected"]:
            self._show("installing")

    def end(self) -> None:
        """Leave the line."""
        if self._live:
            print()

    def _show(self, now: str) -> None:
        text = f"setup: {self._what}: {min(self._done, self._total)}/{self._total} {now}"
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{text[:width]:<{width}}", end="", flush=True)
        else:
            print(text, flush=True)


def _run(what: str, command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SetupError(f"{what} failed:\n{done.stdout}")


# --- the jars -----------------------------------------------------------------


def fetch_jars() -> None:
    """Fetch the jars that are missing from the user's cache.

    Raises: SetupError when a download failed; what is complete is kept.
    """
    from ksql.core.process import jar_dir, locked, present  # noqa: PLC0415 needs a checked Python

    folder = jar_dir()
    missing = [jar for jar in locked() if not present(jar, folder)]
    if not missing:
        return
    megabytes = sum(jar.size_bytes for jar in missing) / 1e6
    say(f"fetching {len(missing)} jars ({megabytes:.0f} MB) into {folder}")
    command = [str(venv_python()), "-m", "server.tools.fetch"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:  # noqa: S603 our own module
        raise SetupError("the jars are not complete, see above.")


def archive_classes() -> None:
    """Have Spark's JVM write the archive that later starts use; they do without if they must."""
    command = [str(venv_python()), "-m", "server.tools.archive"]
    subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 our own module


if __name__ == "__main__":
    sys.exit(main())
