"""Errors in a pattern, or in a text that it should match."""

from __future__ import annotations

from ksql.java.values import EvaluationError


class BadPattern(EvaluationError):
    """A pattern that Java refuses."""

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(f"Invalid format pattern '{pattern}': {why}")


class BadText(EvaluationError):
    """A text that does not follow its pattern, or that names no moment."""

    def __init__(self, kind: str, text: str, pattern: str, why: str = "") -> None:
        reason = f": {why}" if why else ""
        super().__init__(f"Failed to parse {kind} '{text}' with formatter '{pattern}'{reason}")


class NotInMoment(EvaluationError):
    """A pattern asks for a field that the value does not have: hours of a DATE."""

    def __init__(self, letter: str) -> None:
        super().__init__(
            f"Unsupported field: the value has nothing for the pattern letter {letter}"
        )


class UnknownZone(EvaluationError):
    """A zone id that Java does not know."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown time-zone ID: {name}")


class OutOfRange(EvaluationError):
    """A field whose value cannot be: month 13."""

    def __init__(self, field: str, value: int) -> None:
        super().__init__(f"Invalid value for {field}: {value}")
