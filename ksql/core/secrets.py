"""The names of secrets, which no one may see, and texts without those in their URLs."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|user\.info", re.IGNORECASE
)
_USER_INFO: Final = re.compile(r"(?<=://)[^\s,'\"<>]*@")
"""Up to the last ``@`` of the URL: a password may hold ``@`` and ``/`` though it should not."""
_PARAMETERS: Final = re.compile(
    r"([?&;][^=&;\s]*(?:password|passwd|secret|token|credential)[^=&;\s]*=)[^&;\s,'\"]*",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Return whether the value of that name is for nobody to see."""
    return _NAMES.search(name) is not None


def without_secrets(text: str) -> str:
    """Return a text with the users, passwords and secret parameters of its URLs hidden."""
    if "://" not in text:
        return text
    return _PARAMETERS.sub(rf"\1{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", text))
