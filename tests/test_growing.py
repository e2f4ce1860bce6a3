"""Arrays that grow chunk by chunk are the files that zarr writes."""

from pathlib import Path

import numpy as np
import pytest

from gibbsite import store
from gibbsite.growing import Growing


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("shape", [(10,), (10, 3), (8, 3), (3,), (0,), (0, 3)])
@pytest.mark.parametrize("dtype", ["int16", "int64", "uint16", "float32"])
def test_a_store_of_growing_arrays_is_what_zarr_writes(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(1).integers(0, 9, shape).astype(dtype)
    # Zarr leaves out what holds nothing.
    values[4:8] = 0
    dims, chunk = ("pixel", "feature")[: len(shape)], (4, *shape[1:])
    with store.create(tmp_path / "zarr", "features", scene="a") as group:
        store.add_array(group, "x", dims, shape=shape, dtype=dtype, chunks=chunk, fill_value=0)[...] = values
    with store.writing(tmp_path / "grown") as part:
        array = Growing(part / "x", dims, chunk, dtype)
        for number, start in enumerate(range(0, len(values), 4)):
            array.put(number, values[start : start + 4])
        array.finish(len(values))
        store.make_group(part, "features", scene="a")
    assert files(tmp_path / "grown") == files(tmp_path / "zarr")
    found = store.read(tmp_path / "grown", "features")["x"]
    np.testing.assert_array_equal(found[...], values)
    assert found.dtype == values.dtype


def test_an_array_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    with store.writing(tmp_path / "a.zarr") as part:
        Growing(part / "x", ("pixel",), (4,), "int16").put(0, np.ones(4, np.int16))
        store.make_group(part, "features")
    assert "x" not in store.read(tmp_path / "a.zarr", "features")
