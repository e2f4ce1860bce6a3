"""Whole scenes cleaned: same bytes for any blocks, nearer to the truth than what was recorded, refused when they must
be."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import f1_score

import handmade_cubes
from archive_files import L_ROWS, write_pds
from command_line import Run, gibbsite
from gibbsite import crism, features
from gibbsite.cleaned import CleanedScene, clean_source, open_cleaned
from gibbsite.errors import InputError
from gibbsite.observation import open_observation
from gibbsite.scene import Grid
from gibbsite.settings import Settings, Simulate, validate
from gibbsite.simulate.detector import L, sensor_channels
from gibbsite.simulate.fields import uniform
from gibbsite.simulate.instrument import Scenery, sensor_recorder
from gibbsite.sources import of_observation
from gibbsite.steps import basis as basis_step
from gibbsite.steps import features as features_step
from handmade_cubes import Cube

SIMULATED = Simulate(lines=120, binning=5)
NOTHING = {"incidence": False, "despike": False, "despike_columns": False, "destripe": False, "smile": False}


@pytest.fixture(scope="module")
def trr3(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A simulated observation with the cube of its TRR3 image: stripes of 0.4 %, no stronger than its noise."""
    folder = tmp_path_factory.mktemp("trr3")
    run = Run(folder, folder / "observation")
    settings = {"seed": 2, "simulate": SIMULATED.model_dump()}
    assert gibbsite("simulate", "--out", run.observation, settings=settings) == 0
    assert gibbsite("ingest", run.trr3, "--ddr", run.ddr, "--out", run.cube, settings=settings) == 0
    return run


def cleaned(run: Run, **chosen: object) -> CleanedScene:
    return open_cleaned(run.cube, Settings.model_validate({"clean": NOTHING | chosen}))


def lines_of(scene: CleanedScene) -> tuple[np.ndarray, np.ndarray]:
    blocks = list(scene.blocks())
    return np.concatenate([block.lines for block in blocks]), np.concatenate([block.n_despiked for block in blocks])


def truth_of(scene: CleanedScene) -> tuple[np.ndarray, np.ndarray]:
    """Noise-free I/F (line, band, sample) in the bands of a scene without smile correction, and where spikes were
    put."""
    recorder, scenery = sensor_recorder(L, SIMULATED, seed=2), Scenery.of(SIMULATED, 2)
    rising = np.argsort(recorder.channels.wavelength.mean(axis=1))[scene.corrections.band]
    width = scene.source.grid.width
    truth, spike = [], []
    for y in range(SIMULATED.lines):
        pixels = scenery.pixels(np.full(width, y), np.arange(width))
        truth.append((recorder.spectra(pixels) * pixels.light)[rising])
        where = pixels.line[None], pixels.sample[None], recorder.channels.channel[rising, None]
        spike.append(uniform(recorder.stream[1], *where) < recorder.spike_rate)
    return np.array(truth), np.array(spike)


# ---------------------------------------------------------------------------------------------------- same bytes

EVERYTHING = {
    "despike": True, "despike_columns": True, "destripe": True, "ratio": True, "ratio_lines": 9, "smile": True,
    "smooth": 5, "incidence": True,
}  # fmt: skip


NEAR_AIR = crism.nominal_wavelength("L", np.array(L_ROWS))[
    [400, 380, 360, 340, 320, 300, 288, 284, 281, 275, 260, 245, 230, 215]
]
"""µm, rising, of 14 bands, two of them at 1.980 and 2.007."""


def write_scan(folder: Path, n_columns: int) -> Path:
    """A volcano scan with a carbon dioxide band, a little deeper from column to column, and a toothed artefact."""
    wavelength = crism.nominal_wavelength("L", np.array(L_ROWS))
    depth = np.exp(-(((wavelength - 2.007) / 0.03) ** 2)) * np.linspace(0.5, 0.7, n_columns)[:, None]
    artefact = 0.01 * np.sin(300 * wavelength) * (np.abs(wavelength - 2.0) < 0.2) * np.ones((n_columns, 1))
    lines = np.stack([np.exp(-depth), artefact, -artefact])
    return write_pds(folder, "ADR10000000000_00000_VS00L_8", lines, rows=L_ROWS)


@pytest.mark.parametrize("chunk_lines", [1, 7, 16])
def test_lines_are_the_same_bytes_for_any_chunks_whatever_corrections_run(
    chunk_lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    height, width = 104, 11
    spectra = handmade_cubes.spectra(height, width)
    random = np.random.default_rng(3)
    spectra[random.random(spectra.shape) < 0.01] += 0.4
    spectra[random.random(spectra.shape) < 0.01] = np.nan
    wavelength = NEAR_AIR
    extra = {
        "wavelength": wavelength,
        "detector_column": np.broadcast_to(np.arange(width, dtype=np.int16), (height, width)),
        "incidence": np.linspace(20, 70, height * width, dtype=np.float32).reshape(height, width),
        "column_wavelength": wavelength + np.linspace(-0.02, 0.02, width)[:, None],
    }
    scan = write_scan(tmp_path, width)
    found = []
    for lines, block_lines in ((104, 104), (chunk_lines, 1)):
        monkeypatch.setattr("gibbsite.cleaned.BLOCK_LINES", block_lines)
        cube = Cube(spectra, Grid(height, width), chunk_lines=lines, extra=extra)
        path = handmade_cubes.write_cube(tmp_path / f"{lines}.zarr", cube)
        air = {"atmosphere": "2007/1980", "volcano_scan": str(scan)}
        scene = open_cleaned(path, validate({"clean": EVERYTHING | air}, "test"))
        assert scene.corrections.air is not None
        assert (scene.corrections.air.tooth != 0).any(), "the record has an artefact; else this test shows less"
        found.append(lines_of(scene))
    assert found[0][1].sum() > 0, "nothing was despiked; else this test shows less"
    assert np.isfinite(found[0][0]).any()
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_lines_straight_from_the_archive_file_are_those_of_the_cube_store(trr3: Run) -> None:
    chosen = validate({}, "test")
    straight = clean_source(of_observation(open_observation(trr3.trr3, trr3.ddr, None), chosen.ingest), chosen)
    stored = open_cleaned(trr3.cube, chosen)
    assert np.array_equal(straight.source.good_band, stored.source.good_band)
    assert np.array_equal(straight.source.valid, stored.source.valid)
    for ours, theirs in zip(lines_of(straight), lines_of(stored), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# ---------------------------------------------------------------------------------------------------- nearer to truth


def test_spikes_of_a_simulated_scene_are_found_and_little_else(trr3: Run) -> None:
    plain, despiked = cleaned(trr3), cleaned(trr3, despike=True, despike_columns=True)
    truth, spike = truth_of(plain)
    (before, _), (after, counts) = lines_of(plain), lines_of(despiked)
    usable = np.isfinite(before)
    changed = usable & (before != after)
    assert (changed & spike).sum() / (usable & spike).sum() > 0.95, "spikes were left"
    assert (changed & ~spike).sum() / usable.sum() < 5e-5, "values were spoilt"
    at = usable & spike
    error = [float(np.sqrt(np.mean((found - truth)[at] ** 2))) for found in (before, after)]
    assert error[1] < error[0] / 5
    # A value may be replaced along the spectrum and again down the column.
    assert np.array_equal(counts > 0, changed.any(axis=1))


def test_planted_stripes_of_a_simulated_scene_are_weakened(trr3: Run) -> None:
    scene = cleaned(trr3, destripe=True, incidence=True)
    assert scene.corrections.gain is not None
    rising = np.argsort(sensor_channels(L, SIMULATED.binning).wavelength.mean(axis=1))
    planted = sensor_recorder(L, SIMULATED, seed=2).gain[rising][scene.corrections.band].T
    seen = L.scene_columns(SIMULATED.binning)
    left = np.log(planted / scene.corrections.gain.T[: len(planted)])[seen]
    removed = 1 - left.var() / np.log(planted[seen]).var()
    assert removed > 0.3, f"{removed:.0%} of the stripes' variance was removed"


def test_absorptions_keep_their_depth_through_the_default_corrections(trr3: Run) -> None:
    plain = cleaned(trr3)
    truth, _ = truth_of(plain)
    found, _ = lines_of(cleaned(trr3, despike=True, despike_columns=True, destripe=True))
    wavelength = plain.wavelength
    for centre in (1.91, 2.21, 2.31):
        band = [int(np.abs(wavelength - place).argmin()) for place in (centre - 0.06, centre, centre + 0.06)]
        true, mine = (
            1 - 2 * some[:, band[1] - 1 : band[1] + 2].mean(axis=1)
            / (some[:, band[0] - 1 : band[0] + 2].mean(axis=1) + some[:, band[2] - 1 : band[2] + 2].mean(axis=1))
            for some in (truth, found)
        )  # fmt: skip
        deep = (true > 0.03) & np.isfinite(mine)
        assert deep.sum() > 20
        assert mine[deep].mean() == pytest.approx(true[deep].mean(), rel=0.1), f"{centre} µm"


def test_the_smile_of_a_simulated_scene_is_straightened(trr3: Run) -> None:
    """The CO2 minimum of columns at the edge and in the middle lies at the same band afterwards."""
    bent, straight = lines_of(cleaned(trr3))[0], lines_of(cleaned(trr3, smile=True))[0]
    wavelength = cleaned(trr3, smile=True).wavelength
    near = np.flatnonzero(np.abs(wavelength - 2.007) < 0.03)

    def minimum(lines: np.ndarray) -> np.ndarray:
        """µm (sample) of the absorption's centre of mass, mean of all lines."""
        mean = np.nanmean(lines[:, near], axis=0)
        weight = mean.max(axis=0) - mean
        return (weight * wavelength[near, None]).sum(axis=0) / weight.sum(axis=0)

    seen = L.scene_columns(SIMULATED.binning)
    offset = bent.shape[1] - straight.shape[1]
    assert offset == 0, "both have the bands within features.wavelengths"
    before, after = (np.ptp(minimum(lines[:, :, seen])) for lines in (bent, straight))
    assert after < before / 3, f"the minimum wanders by {1000 * before:.1f} nm before and {1000 * after:.1f} nm after"


def test_default_corrections_do_not_blur_the_classes_of_a_simulated_scene(trr3: Run) -> None:
    plain = separability(cleaned(trr3, incidence=True), trr3.observation)
    all_of_them = separability(open_cleaned(trr3.cube, validate({}, "test")), trr3.observation)
    assert all_of_them > plain - 0.003, f"mean F1 of a linear classifier fell from {plain:.4f} to {all_of_them:.4f}"


def separability(scene: CleanedScene, observation: Path) -> float:
    """Mean F1 of a linear classifier that learns the true classes in strips of 8 lines and maps the others."""
    basis = basis_step.learn([scene], validate({}, "test").features)
    lines = np.concatenate([block.lines for block in scene.blocks()])
    usable = np.isfinite(lines).all(axis=1)
    feature = features.project_lines(lines, basis)[0].transpose(0, 2, 1)[usable]
    with rasterio.open(observation / "trr3_truth.tif") as source:
        truth = source.read(1)[usable]
    is_taught = (np.nonzero(usable)[0] // 8) % 2 == 0
    fitted = LinearDiscriminantAnalysis().fit(feature[is_taught & (truth > 0)], truth[is_taught & (truth > 0)])
    is_asked = ~is_taught & (truth > 0)
    return float(f1_score(truth[is_asked], fitted.predict(feature[is_asked]), average="macro"))


# ---------------------------------------------------------------------------------------------------- refused, drawn


def small_cube(folder: Path, height: int = 23) -> Path:
    grid = Grid(height, handmade_cubes.WIDTH)
    return handmade_cubes.write_cube(folder / "a.zarr", Cube(handmade_cubes.spectra(height), grid))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"ratio": True}, r"clean.ratio found 23 lines with usable pixels, expected at least 100"),
        ({"smile": True}, r"clean.smile needs the wavelengths of every detector column, .* give the WA record"),
        ({"atmosphere": "2007/1980", "volcano_scan": "no.lbl"}, r"clean.atmosphere needs the detector column"),
        ({"smooth": 15}, r"clean.smooth: found a window of 15 for 14 bands"),
    ],
)
def test_a_correction_that_lacks_something_says_what(chosen: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=message) as caught:
        open_cleaned(small_cube(tmp_path), validate({"clean": chosen}, "test"))
    assert type(caught.value).__name__ in ("InputError", "SettingsError")


def test_a_volcano_scan_that_is_not_there_is_named(trr3: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.lbl: no such file"):
        cleaned(trr3, atmosphere="2007/1980", volcano_scan=str(tmp_path / "absent.lbl"))


def test_the_air_of_a_simulated_scene_is_taken_out_with_its_volcano_scan(trr3: Run) -> None:
    scan = next(path for path in trr3.observation.iterdir() if "_vs" in path.name.lower() and path.suffix == ".lbl")
    plain, corrected = cleaned(trr3), cleaned(trr3, atmosphere="2007/1980", volcano_scan=str(scan))
    before, after = (np.nanmean(lines_of(scene)[0], axis=(0, 2)) for scene in (plain, corrected))
    wavelength = plain.wavelength
    inside, left, right = (int(np.abs(wavelength - place).argmin()) for place in (2.007, 1.93, 2.10))

    def depth(spectrum: np.ndarray) -> float:
        return float(1 - 2 * spectrum[inside] / (spectrum[left] + spectrum[right]))

    assert depth(before) > 0.15
    assert abs(depth(after)) < 0.25 * depth(before), f"depth {depth(before):.3f} before, {depth(after):.3f} after"


@pytest.mark.parametrize("pair", ["2007/1980", "2011/1899"])
def test_the_artefact_of_a_real_scan_takes_teeth_out_of_a_real_cube(pair: str, shared_data: Path) -> None:
    crism_files = shared_data / "crism"
    record = crism_files / "cdr/CDR410803692813_WA0300000L_3.LBL"
    product = open_observation(crism_files / "trr3/frt0001458f_01_if156l_trr3.lbl", None, record)
    scan = crism_files / "cdr/ADR10000000000_061C4_VS00L_8.LBL"
    chosen = validate({"clean": NOTHING | {"atmosphere": pair, "volcano_scan": str(scan)}}, "test")
    patched = clean_source(of_observation(product, chosen.ingest), chosen)
    air = patched.corrections.air
    assert air is not None
    plain = replace(air, artefact=np.zeros_like(air.artefact))
    unpatched = replace(patched, corrections=replace(patched.corrections, air=plain))
    before, after = (np.nanmean(lines_of(scene)[0], axis=(0, 2)) for scene in (unpatched, patched))
    near = (patched.wavelength > 1.92) & (patched.wavelength < 2.12)

    def teeth(spectrum: np.ndarray) -> float:
        """Root mean square of what a band has beyond the mean of its neighbours."""
        return float(np.sqrt(np.mean((spectrum - (np.roll(spectrum, 1) + np.roll(spectrum, -1)) / 2)[near] ** 2)))

    assert teeth(after) < 0.95 * teeth(before)
    away = np.abs(patched.wavelength - 2.0) > 0.25
    np.testing.assert_allclose(after[away], before[away], rtol=1e-6, err_msg="bands away from 2 µm were changed")


def test_the_quick_look_is_drawn_and_the_same_bytes_again(trr3: Run, tmp_path: Path) -> None:
    chosen = validate({}, "test")
    basis = tmp_path / "basis.zarr"
    basis_step.run(argparse.Namespace(cubes=[trr3.cube], out=basis), chosen)
    drawn = []
    for number in range(2):
        picture = tmp_path / f"{number}.png"
        out = tmp_path / f"{number}.zarr"
        features_step.run(argparse.Namespace(cube=trr3.cube, basis=basis, out=out, quick_look=picture), chosen)
        drawn.append(picture.read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(b"\x89PNG")
    assert 20_000 < len(drawn[0]) < 1_000_000
