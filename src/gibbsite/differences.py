"""What differs between two sets of settings, in words."""

from collections.abc import Iterator, Mapping
from typing import Any


def differences(found: Any, expected: Any, key: str = "") -> Iterator[str]:
    """Each key whose value differs, with both values."""
    if isinstance(found, Mapping) and isinstance(expected, Mapping):
        for name in sorted({*found, *expected}):
            yield from differences(found.get(name), expected.get(name), f"{key}.{name}" if key else name)
    elif found != expected:
        yield f"{key} was {found!r}, is {expected!r}"
