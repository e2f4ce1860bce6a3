"""Fixtures that many test files share."""

from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a kernel's test pays for its compilation, and machines are noisy: time proves nothing here.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository; tests that need it skip where it is not."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data not here (expected in ../shared/data beside the repository)")
    return folder
