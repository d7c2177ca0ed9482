from __future__ import annotations

import pytest

from tests.hygiene import LARGEST_BYTES, main


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"x = 1\n", ""),
        (b"", ""),
        (b"\x00binary", ""),
        (b"x", "does not end with a newline"),
        (b"<" * 7 + b" ours\n", "has a merge mark"),
        (b"-----BEGIN RSA PRIV" + b"ATE KEY-----\n", "holds a private key"),
        (b"\n" * (LARGEST_BYTES + 1), "is larger"),
    ],
)
def test_each_fault_is_reported(tmp_path, capsys, data, fault):
    file = tmp_path / "file"
    file.write_bytes(data)
    assert main([str(file)]) == bool(fault)
    assert fault in capsys.readouterr().out
