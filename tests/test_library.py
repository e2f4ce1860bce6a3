"""Spectral libraries read from disk, and what they say of spectra that are known."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from archive_files import write_envi
from gibbsite import library
from gibbsite.absorptions import TABLE
from gibbsite.errors import InputError
from gibbsite.interpretation import shapes_of
from gibbsite.matching import likeness, rank, shape
from gibbsite.spectra_files import write_library

LIMITS = (1.0, 2.6)
WAVELENGTH = np.arange(0.9, 2.7, 0.00655)
TYPE_NAMES = {
    "al smectite": "Al smectite", "alunite": "alunite", "analcime": "analcime", "bassanite": "bassanite",
    "chlorite": "chlorite", "co2 ice": "carbon dioxide", "epidote": "epidote", "fe ca carbonate": "Ca or Fe",
    "fe olivine": "Fe olivine", "fe smectite": "Fe smectite", "gypsum": "gypsum", "h2o ice": "water ice",
    "hcp": "high-calcium", "hydrated silica": "hydrated silica", "hydrox fe sulf": "hydroxylated",
    "illite muscovite": "illite", "jarosite": "jarosite", "kaolinite": "kaolinite", "lcp": "low-calcium",
    "margarite": "margarite", "mg carbonate": "Mg carbonate", "mg olivine": "Mg olivine",
    "mg smectite": "Mg smectite", "mono hyd sulf": "monohydrated", "plagioclase": "plagioclase",
    "poly hyd sulf": "polyhydrated", "prehnite": "prehnite", "serpentine": "serpentine", "talc": "talc",
}  # fmt: skip
"""Phase of a type spectrum -> how the table's entry for it begins."""


@pytest.mark.parametrize("item", TABLE, ids=lambda item: item.name)
def test_each_entry_of_the_table_is_its_own_best_match_however_bright_sloped_or_deep(item) -> None:
    spectrum = (0.3 - 0.05 * WAVELENGTH) * item.spectrum(WAVELENGTH) ** 0.4
    own = shape(WAVELENGTH, spectrum, LIMITS)
    assert own is not None
    (best, score), *_ = rank(own, shapes_of(library.built_in(), LIMITS))
    assert best.name == item.name
    assert score > 0.9
    assert best.source == item.source


def test_the_table_names_most_type_spectra_and_has_nearly_all_within_three(shared_data: Path) -> None:
    shapes = shapes_of(library.built_in(), LIMITS)
    place = {}
    for reference, own in shapes_of(library.read(shared_data / "crism" / "mica"), LIMITS):
        if reference.name in TYPE_NAMES:
            names = [match.name for match, _ in rank(own, shapes)]
            place[reference.name] = next(
                n for n, name in enumerate(names) if name.startswith(TYPE_NAMES[reference.name])
            )
    assert len(place) == len(TYPE_NAMES)
    assert sum(n == 0 for n in place.values()) == 20, place
    assert sum(n < 3 for n in place.values()) == 28, place


def test_the_score_is_one_for_itself_and_symmetric() -> None:
    shapes = [own for _, own in shapes_of(library.built_in(), LIMITS)]
    assert likeness(shapes[0], shapes[0]) == pytest.approx(1.0)
    assert likeness(shapes[3], shapes[7]) == pytest.approx(likeness(shapes[7], shapes[3]))
    assert all(0.0 <= likeness(shapes[0], other) <= 1.0 for other in shapes)
    assert likeness(shapes[0], np.zeros_like(shapes[0])) == 0.0


def test_type_spectra_are_read_with_phase_and_product(shared_data: Path) -> None:
    found = {item.name: item for item in library.read(shared_data / "crism" / "mica")}
    assert len(found) == 31
    jarosite = found["jarosite"]
    assert jarosite.source.startswith("type spectrum FRT")
    assert (jarosite.wavelength[0], jarosite.spectrum[0]) == (0.43613, 0.99413)


def test_an_envi_library_and_both_kinds_of_csv_give_the_same_spectra(tmp_path: Path) -> None:
    values = np.stack([TABLE[20].spectrum(WAVELENGTH), TABLE[3].spectrum(WAVELENGTH)])
    names = ["Jarosit (Ätna)", "kaolinite"]
    write_library(tmp_path / "lib.sli", WAVELENGTH, values, [{"name": name} for name in names])
    wide = ["nm," + ",".join(names)]
    wide += [f"{1000 * w:.3f},{a:.9f},{b:.9f}" for w, a, b in zip(WAVELENGTH[::-1], *values[:, ::-1], strict=True)]
    (tmp_path / "wide.csv").write_text("\n".join(wide), encoding="utf-8")
    long = ["name,wavelength_um,value"]
    long += [
        f"{n},{w:.6f},{v:.9f}"
        for n, row in zip(names, values, strict=True)
        for w, v in zip(WAVELENGTH, row, strict=True)
    ]
    (tmp_path / "long.csv").write_text("\n".join(long), encoding="utf-8")
    for file in ("lib.sli", "lib.hdr", "wide.csv", "long.csv"):
        found = library.read(tmp_path / file)
        assert [item.name for item in found] == names, file
        for item, row in zip(found, values, strict=True):
            assert_allclose(item.wavelength, WAVELENGTH, atol=1e-6)
            assert_allclose(item.spectrum, row, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "scale", "mark"), [("<f4", 1.0, -1.23e34), ("<i2", 10000.0, -9999), ("<f4", 1.0, None)]
)
def test_deleted_channels_of_an_envi_library_are_no_values(
    tmp_path: Path, dtype: str, scale: float, mark: float | None
) -> None:
    spectrum = TABLE[3].spectrum(WAVELENGTH) * scale
    spectrum[[5, 60, 61]] = -1.23e34 if mark is None else mark
    marked = {} if mark is None else {"data_ignore_value": f"{mark}"}
    scaled = {} if scale == 1.0 else {"reflectance_scale_factor": f"{scale}"}
    listed = "{" + ", ".join(f"{value:.6f}" for value in WAVELENGTH) + "}"
    names = {"spectra_names": "{kaolinite}", "wavelength": listed, "wavelength_units": "Micrometers"}
    header = write_envi(tmp_path, "lib", spectrum[None, :, None], dtype=dtype, **names, **marked, **scaled)
    (item,) = library.read(header)
    assert np.flatnonzero(np.isnan(item.spectrum)).tolist() == [5, 60, 61]
    assert np.nanmin(item.spectrum) > 0


def test_library_spectra_that_end_too_early_are_not_compared() -> None:
    reference = library.built_in()[0]
    short = reference.wavelength < 2.0
    assert shape(reference.wavelength[short], reference.spectrum[short], LIMITS) is None
    assert shape(reference.wavelength, -reference.spectrum, LIMITS) is None


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("gone.sli", None, "no such spectral library"),
        ("bare.sli", b"", "no header"),
        ("words.csv", b"a,b\nx,y\n", "not a table of numbers"),
        ("ragged.csv", b"wavelength,b\n1.0,2.0\n1.1\n", "not a table of numbers"),
        ("long.csv", b"name,wavelength_um,depth\na,1.0,2.0\n", "expected ratio_mean, mean or value"),
        ("empty.csv", b"wavelength\n1.0\n", "a library without spectra"),
        ("folder", b"", "no label"),
    ],
)
def test_a_broken_library_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    if name == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=complaint) as error:
        library.read(tmp_path / name)
    assert "\n" not in str(error.value)
