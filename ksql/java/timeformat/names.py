"""The English names that java.time prints and reads."""

from __future__ import annotations

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALVES = ("AM", "PM")
ERAS = ("BC", "AD")
LONG_ERAS = ("Before Christ", "Anno Domini")
QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
SHORT_QUARTERS = ("Q1", "Q2", "Q3", "Q4")
SHORT_MONTHS = tuple(name[:3] for name in MONTHS)
SHORT_DAYS = tuple(name[:3] for name in DAYS)
