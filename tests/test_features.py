"""Spectra to features: against textbook PCA, the same bytes for any chunks, whitened, robust, fixed point."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA

import handmade_cubes
import strategies
from gibbsite import feature_store, features, fences, kernels, store
from gibbsite.cleaned import open_cleaned
from gibbsite.errors import InputError, SettingsError
from gibbsite.settings import Settings, validate
from gibbsite.steps import basis as basis_step
from gibbsite.steps import features as features_step
from handmade_cubes import Cube


def learn(spectra: np.ndarray, n_features: int | str, method: str = "pca") -> features.Basis:
    within, cell = fences.fence_in([spectra.T.astype(np.float32)], np.arange(len(spectra)))
    wavelength = np.linspace(1.0, 2.6, spectra.shape[1])
    noise = features.noise_sums(cell, np.arange(len(spectra)), len(spectra))
    return features.fit_basis(features.Learnt(features.band_sums(cell), noise, within, wavelength), n_features, method)


def sums_of(spectra: np.ndarray, within: fences.Fences) -> features.BandSums:
    return features.band_sums(fences.in_cells(spectra.T, within))


def flat(seed: int = 5, **shape: int) -> np.ndarray:
    cube = handmade_cubes.spectra(**{"height": 83, "width": 31} | shape, seed=seed)
    return cube.reshape(-1, cube.shape[-1])


PLAIN = {"destripe": False, "incidence": False, "despike": False, "despike_columns": False, "smile": False}


def settings(**sections: dict) -> Settings:
    plain = {"features": {"n_features": 4}, "clean": PLAIN}
    return validate({name: plain.get(name, {}) | sections.get(name, {}) for name in plain | sections}, "test")


def run_both(folder: Path, cubes: list[Path], chosen: Settings) -> tuple[Path, Path]:
    basis, out = folder / "basis.zarr", folder / "features.zarr"
    basis_step.run(argparse.Namespace(cubes=cubes, out=basis), chosen)
    features_step.run(argparse.Namespace(cube=cubes[0], basis=basis, out=out, quick_look=None), chosen)
    return basis, out


def arrays_of(path: Path, kind: str) -> dict[str, np.ndarray]:
    group = store.read(path, kind)
    return {name: np.asarray(group[name][...]) for name in group.array_keys()}


# The basis


def test_features_equal_whitened_pca_of_sklearn_up_to_sign():
    spectra = flat().astype(np.float64)
    within = fences.fences(spectra.T)
    spectra = np.clip(spectra, within.low, within.high)
    standard = (spectra - spectra.mean(axis=0)) / spectra.std(axis=0)
    oracle = PCA(5, svd_solver="full").fit(standard)
    learnt = features.Learnt(sums_of(spectra, within), features.no_sums(14), within, np.arange(14.0))
    basis = features.fit_basis(learnt, 5)
    theirs = oracle.transform(standard) / np.sqrt(oracle.explained_variance_ * (len(spectra) - 1) / len(spectra))
    ours = features.project(spectra, basis)
    theirs *= np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    # Rounding to cells, a thousandth of a standard deviation, moves the mean of n spectra by √(12 n) times less: 6e-6.
    np.testing.assert_allclose(basis.variance, oracle.explained_variance_ratio_, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose((basis.mean - spectra.mean(axis=0)) / spectra.std(axis=0), 0.0, atol=5e-5)
    np.testing.assert_allclose(basis.scale, spectra.std(axis=0), rtol=2e-5)


def test_features_of_the_spectra_learnt_from_are_white():
    spectra = flat(seed=11)
    value = features.project(spectra, learn(spectra, 6))
    np.testing.assert_allclose(value.mean(axis=0), 0.0, atol=features.FIXED_STEP / 10, err_msg="mean feature != 0")
    np.testing.assert_allclose(value.T @ value / len(value), np.eye(6), atol=2e-4, err_msg="covariance != I")


def test_largest_loading_of_every_axis_is_positive_and_flipped_bands_flip_nothing_else():
    spectra = flat().astype(np.float64)
    basis = learn(spectra, 5)
    assert (basis.axes.max(axis=1) == np.abs(basis.axes).max(axis=1)).all()
    mirrored = learn(0.6 - spectra, 5)
    np.testing.assert_allclose(np.abs(mirrored.axes), np.abs(basis.axes), atol=1e-4)
    assert (mirrored.axes.max(axis=1) == np.abs(mirrored.axes).max(axis=1)).all()
    np.testing.assert_allclose(features.project(0.6 - spectra, mirrored), -features.project(spectra, basis), atol=2e-3)


@given(strategies.spectra(), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_blocks_or_their_order(spectra, random):
    within = fences.fences(spectra.T)
    whole = sums_of(spectra, within)
    cuts = sorted(random.choices(range(len(spectra) + 1), k=3))
    blocks = np.split(spectra, cuts)
    random.shuffle(blocks)
    joined = features.no_sums(spectra.shape[1])
    for block in blocks:
        joined += sums_of(block, within)
    assert joined.n == whole.n
    assert (joined.total == whole.total).all(), "sums of a scene != sum over its blocks"
    assert (joined.outer == whole.outer).all(), "products of a scene != sum over its blocks"


def test_sums_stay_integers_beyond_one_matrix_product(monkeypatch):
    spectra = flat()
    within = fences.fences(spectra.T)
    whole = sums_of(spectra, within)
    monkeypatch.setattr(features, "SPECTRA_AT_ONCE", 7)
    pieces = sums_of(spectra, within)
    assert (whole.outer == pieces.outer).all()
    half = (within.high - within.low) / 2
    share = (np.clip(spectra.astype(float), within.low, within.high) - within.low - half) / half
    cell = np.rint(share * fences.CELLS).astype(int)
    assert np.abs(cell).max() > fences.CELLS // 2
    assert whole.outer[2, 9] == sum(int(a) * int(b) for a, b in zip(cell[:, 2], cell[:, 9], strict=True))


def test_a_pixel_has_the_same_features_alone_and_in_any_crowd():
    spectra = flat()
    basis = learn(spectra, 7)
    whole = features.project(spectra, basis)
    alone = np.concatenate([features.project(spectra[i : i + 1], basis) for i in range(0, 2000, 97)])
    assert (whole[0:2000:97] == alone).all()
    backwards = features.project(np.asfortranarray(spectra[::-1]), basis)[::-1]
    assert (whole == backwards).all()
    held = np.clip(spectra.astype(float), basis.fences.low, basis.fences.high)
    exact = (held - basis.mean) / basis.scale @ basis.axes.T
    np.testing.assert_allclose(whole, exact, atol=features.FIXED_STEP / 20, err_msg="rounding reaches the fixed step")


def test_spikes_do_not_take_over_the_basis():
    spectra = flat(height=200).astype(np.float64)
    plain = learn(spectra, 3)
    random = np.random.Generator(np.random.Philox(key=3))
    spiked = spectra.copy()
    hit = random.random(spectra.shape) < 0.001
    spiked[hit] = random.choice([-40.0, 900.0], hit.sum())
    robust = learn(spiked, 3)
    cosine = np.linalg.svd(np.linalg.qr(robust.axes.T)[0].T @ np.linalg.qr(plain.axes.T)[0])[1]
    assert (cosine > 0.98).all(), f"the space of the axes turned away: cosines {cosine}"
    naive = np.linalg.eigh(np.corrcoef(spiked.T))[1][:, -3:]
    assert np.linalg.svd(naive.T @ np.linalg.qr(plain.axes.T)[0])[1].min() < 0.5, "spikes too tame to tell"
    np.testing.assert_allclose(robust.scale, plain.scale, rtol=0.1)
    assert np.abs(features.project(spiked, robust)).max() < 20.0


def test_a_unit_of_two_per_cent_lies_within_the_fences_however_odd_it_is():
    spectra = flat(height=200)
    n_odd = len(spectra) // 50
    spectra[:n_odd] += np.float32(3.0)
    within = fences.fences(spectra.T)
    assert (spectra[:n_odd] < within.high).all()


def test_constant_bands_carry_nothing():
    spectra = flat()
    spectra[:, 5] = 0.25
    basis = learn(spectra, 4)
    assert basis.scale[5] == 1.0
    np.testing.assert_allclose(basis.axes[:, 5], 0.0, atol=1e-9)
    changed = spectra.copy()
    changed[:, 5] = 0.9
    assert (features.project(changed, basis) == features.project(spectra, basis)).all()


def test_more_features_than_bands_is_a_settings_error():
    with pytest.raises(SettingsError, match=r"n_features: found 15 for 14 bands"):
        learn(flat(), 15)


def test_more_features_than_independent_bands_names_the_rank():
    spectra = flat()
    repeated = np.concatenate([spectra[:, :3], 2.0 * spectra[:, :3] + 0.1], axis=1)
    with pytest.raises(InputError, match=r"n_features is 5, but the spectra vary in only 3 independent ways"):
        learn(repeated, 5)


def test_too_few_pixels_is_an_error():
    with pytest.raises(InputError, match="found 4 usable pixels for 6 features"):
        learn(flat()[:4], 6)


def test_digest_tells_bases_apart():
    assert learn(flat(), 3).digest() == learn(flat(), 3).digest()
    assert learn(flat(), 3).digest() != learn(flat(), 4).digest()
    assert learn(flat(), 3).digest() != learn(flat(seed=6), 3).digest()


# Fixed point


@given(strategies.features)
def test_fixed_point_is_off_by_half_a_step_at_most_and_stops_at_the_clip(values):
    stored = features.quantise(values)
    assert stored.dtype == np.int16
    back = stored * features.FIXED_STEP
    inside = np.abs(values) <= features.FIXED_CLIP
    assert (np.abs(back - values)[inside] <= features.FIXED_STEP / 2).all()
    assert (back[~inside] == np.sign(values[~inside]) * features.FIXED_CLIP).all()
    assert (features.quantise(-values) == -stored).all(), "fixed point is not odd"
    assert (features.quantise(back) == stored).all(), "fixed point of fixed point moved"


def test_fixed_point_range_fills_int16():
    assert features.quantise(np.array([1e9, -1e9])).tolist() == [32767, -32767]


# The steps


@pytest.mark.parametrize("chunk_lines", [1, 5, 23])
def test_basis_and_features_are_the_same_bytes_for_any_chunks(tmp_path, chunk_lines, monkeypatch):
    reflectance = handmade_cubes.spectra()
    reflectance[3, 4, 2] = np.nan
    column = np.broadcast_to(np.arange(handmade_cubes.WIDTH, dtype=np.int16), reflectance.shape[:2])
    incidence = np.linspace(20, 70, column.size, dtype=np.float32).reshape(column.shape)
    extra = {"detector_column": column, "incidence": incidence}
    chosen = settings(clean={"destripe": True, "incidence": True})
    results = []
    # A tiny block size makes blocks single chunks; the usual one puts the whole scene into one block.
    for lines, block_lines in ((9, 24), (chunk_lines, 1)):
        monkeypatch.setattr("gibbsite.cleaned.BLOCK_LINES", block_lines)
        folder = tmp_path / f"{lines}-{block_lines}"
        cube = Cube(reflectance, handmade_cubes.map_grid(), chunk_lines=lines, extra=extra)
        basis, out = run_both(folder, [handmade_cubes.write_cube(folder / "scene.zarr", cube)], chosen)
        results.append(
            {p.relative_to(folder): p.read_bytes() for s in (basis, out) for p in s.rglob("*") if p.is_file()}
        )
    assert results[0] == results[1]


def test_only_valid_pixels_with_finite_spectra_are_kept(tmp_path):
    reflectance = handmade_cubes.spectra()
    reflectance[7, 2] = np.nan
    reflectance[8, 3, 4] = np.nan
    valid = np.ones(reflectance.shape[:2], bool)
    valid[20:, :] = valid[5, 1] = False
    cube = Cube(reflectance, handmade_cubes.map_grid(), extra={"valid": valid})
    _, out = run_both(tmp_path, [handmade_cubes.write_cube(tmp_path / "scene.zarr", cube)], settings())
    stored = arrays_of(out, "features")
    expected = valid.copy()
    expected[7, 2] = False
    assert stored["pixel"].tolist() == np.flatnonzero(expected).tolist()
    assert stored["feature"].shape == (expected.sum(), 4)
    attrs = store.read(out, "features").attrs
    assert attrs["scene"] == "scene"
    assert attrs["grid"] == handmade_cubes.map_grid().to_json()
    assert (attrs["step"], attrs["clip"]) == (2**-10, 32 - 2**-10)
    assert attrs["clipped_share"] == 0.0
    assert attrs["basis"] == feature_store.read_basis(tmp_path / "basis.zarr").digest()


def test_stored_features_follow_the_contract_formula(tmp_path):
    reflectance = handmade_cubes.spectra()
    cube = Cube(reflectance, handmade_cubes.map_grid())
    basis, out = run_both(tmp_path, [handmade_cubes.write_cube(tmp_path / "scene.zarr", cube)], settings())
    array = arrays_of(basis, "basis")
    held = np.clip(reflectance.reshape(-1, 14).astype(float), array["low"], array["high"])
    expected = ((held - array["mean"]) / array["scale"]) @ array["axes"].T
    np.testing.assert_allclose(arrays_of(out, "features")["feature"] * 2.0**-10, expected, atol=2e-3)


def test_bands_outside_the_range_and_bad_bands_are_not_used(tmp_path):
    reflectance = handmade_cubes.spectra()
    good = np.ones(14, bool)
    good[6] = False
    reflectance[:, :, 6] = np.nan
    cube = Cube(reflectance, handmade_cubes.map_grid(), extra={"good_band": good})
    chosen = settings(features={"n_features": 3, "wavelengths": [1.2, 2.3]})
    basis, _ = run_both(tmp_path, [handmade_cubes.write_cube(tmp_path / "scene.zarr", cube)], chosen)
    wavelength = np.linspace(1.05, 2.5, 14)
    expected = wavelength[good & (wavelength >= 1.2) & (wavelength <= 2.3)]
    assert arrays_of(basis, "basis")["wavelength"].tolist() == expected.tolist()


def test_incidence_and_stripes_are_taken_out(tmp_path):
    """Shading and gains put on a scene: each correction brings its features nearer to the truth."""
    height, width = 160, 40
    plain = handmade_cubes.spectra(height, width)
    grid = handmade_cubes.map_grid(height, width)
    incidence = np.linspace(30, 60, height * width, dtype=np.float32).reshape(height, width)
    random = np.random.Generator(np.random.Philox(key=8))
    is_striped = np.arange(width) % 7 == 3
    gain = 1.0 + 0.2 * random.standard_normal((width, 14)) * is_striped[:, None]
    seen = (plain * np.cos(np.radians(incidence))[..., None] * gain).astype(np.float32)
    column = np.broadcast_to(np.arange(width, dtype=np.int16), (height, width))
    extra = {"incidence": incidence, "detector_column": column}
    first = handmade_cubes.write_cube(tmp_path / "plain.zarr", Cube(plain, grid))
    second = handmade_cubes.write_cube(tmp_path / "seen.zarr", Cube(seen, grid, extra=extra))
    basis = tmp_path / "basis.zarr"
    basis_step.run(argparse.Namespace(cubes=[first], out=basis), settings())

    def features_of(cube: Path, **clean: bool) -> np.ndarray:
        out = tmp_path / "features.zarr"
        features_step.write(out, open_cleaned(cube, settings(clean=clean)), feature_store.read_basis(basis))
        return arrays_of(out, "features")["feature"].reshape(height, width, 4) * 2.0**-10

    truth = features_of(first)
    raw, shaded, both = (
        np.abs(features_of(second, incidence=incidence, destripe=destripe) - truth).mean(axis=(0, 2))
        for incidence, destripe in ((False, False), (True, False), (True, True))
    )
    assert shaded[~is_striped].max() < 0.01 * raw[~is_striped].min()
    assert both[is_striped].mean() < 0.3 * shaded[is_striped].mean()


def test_basis_of_two_scenes_is_the_basis_of_their_pixels(tmp_path):
    first, second = handmade_cubes.spectra(seed=1), handmade_cubes.spectra(17, 11, seed=2) + np.float32(0.05)
    for name, reflectance in (("a", first), ("b", second)):
        grid = handmade_cubes.map_grid(*reflectance.shape[:2])
        handmade_cubes.write_cube(tmp_path / f"{name}.zarr", Cube(reflectance, grid))
    cubes = [tmp_path / "a.zarr", tmp_path / "b.zarr"]
    basis_step.run(argparse.Namespace(cubes=cubes, out=tmp_path / "basis.zarr"), settings())
    found = feature_store.read_basis(tmp_path / "basis.zarr")
    together = learn(np.concatenate([first.reshape(-1, 14), second.reshape(-1, 14)]), 4)
    assert found.n_pixels == first[..., 0].size + second[..., 0].size
    assert (found.axes == together.axes).all()
    assert (found.mean == together.mean).all()


def test_scenes_of_other_bands_are_refused_naming_both(tmp_path):
    for name, longest in (("a", 2.5), ("b", 2.52)):
        cube = Cube(handmade_cubes.spectra(), handmade_cubes.map_grid(), longest=longest)
        handmade_cubes.write_cube(tmp_path / f"{name}.zarr", cube)
    cubes = [tmp_path / "a.zarr", tmp_path / "b.zarr"]
    with pytest.raises(InputError, match=r"b\.zarr: its 14 bands at 1\.0500-2\.5200 .* of .*a\.zarr"):
        basis_step.run(argparse.Namespace(cubes=cubes, out=tmp_path / "basis.zarr"), settings())
    assert not (tmp_path / "basis.zarr").exists()
    run_both(tmp_path, cubes[:1], settings())
    with pytest.raises(InputError, match=r"b\.zarr: .* of .*basis\.zarr"):
        features_step.run(
            argparse.Namespace(cube=cubes[1], basis=tmp_path / "basis.zarr", out=tmp_path / "f.zarr", quick_look=None),
            settings(),
        )


def test_a_basis_of_spectra_that_were_cleaned_otherwise_is_refused(tmp_path):
    cube = handmade_cubes.write_cube(tmp_path / "a.zarr", Cube(handmade_cubes.spectra(), handmade_cubes.map_grid()))
    basis, _ = run_both(tmp_path, [cube], settings())
    asked = argparse.Namespace(cube=cube, basis=basis, out=tmp_path / "f.zarr", quick_look=None)
    with pytest.raises(InputError, match=r"basis\.zarr: .* clean\.despike was False, is True; .* Set these back"):
        features_step.run(asked, settings(clean={"despike": True}))
    assert not asked.out.exists()
    # What is off may be set as one likes.
    features_step.run(asked, settings(clean={"ratio_lines": 7, "volcano_scan": "elsewhere/ADR.LBL"}))


def test_a_scene_without_usable_pixels_is_refused_and_leaves_nothing(tmp_path):
    good = handmade_cubes.write_cube(tmp_path / "a.zarr", Cube(handmade_cubes.spectra(), handmade_cubes.map_grid()))
    nothing = np.zeros((handmade_cubes.HEIGHT, handmade_cubes.WIDTH), bool)
    column = np.broadcast_to(np.arange(handmade_cubes.WIDTH, dtype=np.int16), nothing.shape)
    cube = Cube(
        handmade_cubes.spectra(),
        handmade_cubes.map_grid(),
        extra={"valid": nothing, "detector_column": column},
    )
    empty = handmade_cubes.write_cube(tmp_path / "b.zarr", cube)
    chosen = settings(clean={"destripe": True})
    with pytest.raises(InputError, match=r"b\.zarr: no usable pixel"):
        basis_step.run(argparse.Namespace(cubes=[good, empty], out=tmp_path / "basis.zarr"), chosen)
    basis_step.run(argparse.Namespace(cubes=[good], out=tmp_path / "basis.zarr"), chosen)
    with pytest.raises(InputError, match=r"b\.zarr: no usable pixel"):
        features_step.run(
            argparse.Namespace(cube=empty, basis=tmp_path / "basis.zarr", out=tmp_path / "f.zarr", quick_look=None),
            chosen,
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zarr", "b.zarr", "basis.zarr"]


def test_no_band_in_the_wanted_range_is_an_error(tmp_path):
    cube = handmade_cubes.write_cube(tmp_path / "a.zarr", Cube(handmade_cubes.spectra(), handmade_cubes.map_grid()))
    chosen = settings(features={"wavelengths": [3.0, 3.9], "n_features": 2})
    with pytest.raises(InputError, match=r"no good band within features.wavelengths 3\.0-3\.9 µm"):
        basis_step.run(argparse.Namespace(cubes=[cube], out=tmp_path / "basis.zarr"), chosen)


def test_clipped_share_counts_values_beyond_the_range(tmp_path):
    cube = handmade_cubes.write_cube(tmp_path / "a.zarr", Cube(handmade_cubes.spectra(), handmade_cubes.map_grid()))
    basis, _ = run_both(tmp_path, [cube], settings())
    steep = feature_store.read_basis(basis)
    steeper = features.Basis(**{**vars(steep), "axes": steep.axes * 64.0})
    feature_store.write_basis(tmp_path / "steep.zarr", steeper, settings().clean)
    out = tmp_path / "f.zarr"
    features_step.run(
        argparse.Namespace(cube=cube, basis=tmp_path / "steep.zarr", out=out, quick_look=None), settings()
    )
    stored = arrays_of(out, "features")["feature"]
    share = store.read(out, "features").attrs["clipped_share"]
    assert 0.3 < share < 0.9
    assert share == pytest.approx((np.abs(stored) == 32767).mean(), abs=1e-3)
    json.dumps(share)


# Noise, quality


def test_mnf_puts_signal_first_where_variance_would_put_noise():
    """One noisy band varies most; a smooth pattern in the others is what neighbours share."""
    random = np.random.default_rng(4)
    pattern = np.repeat(random.normal(size=400), 20)
    spectra = 0.3 + 0.01 * random.normal(size=(8000, 12))
    spectra[:, :3] += 0.01 * pattern[:, None]
    spectra[:, 6:] += 0.05 * random.normal(size=8000)[:, None]
    first = {method: features.project(spectra, learn(spectra, 2, method))[:, 0] for method in ("pca", "mnf")}
    share = {method: abs(np.corrcoef(value, pattern)[0, 1]) for method, value in first.items()}
    assert share["mnf"] > 0.8
    assert share["pca"] < 0.2
    basis = learn(spectra, 3, "mnf")
    assert (np.diff(basis.noise_share) >= 0).all()
    white = features.project(spectra, basis)
    np.testing.assert_allclose(np.cov(white.T), np.eye(3), atol=2e-3, err_msg="mnf features are not white")


@pytest.mark.parametrize("method", ["pca", "mnf"])
def test_auto_keeps_the_components_that_are_more_signal_than_noise(method):
    random = np.random.default_rng(9)
    amount = np.repeat(random.normal(size=(300, 3)), 30, axis=0) * [0.05, 0.04, 0.03]
    spectra = 0.3 + amount @ random.normal(size=(3, 14)) + 0.002 * random.normal(size=(9000, 14))
    basis = learn(spectra, "auto", method)
    assert len(basis.axes) == 3
    assert (basis.noise_share < 0.5).all()


def test_noise_needs_neighbours():
    spectra = flat()
    within = fences.fences(spectra.T)
    learnt = features.Learnt(sums_of(spectra, within), features.no_sums(14), within, np.arange(14.0))
    with pytest.raises(InputError, match="found 0 pairs of neighbouring usable pixels"):
        features.fit_basis(learnt, "auto")


def test_neighbours_are_of_one_line():
    spectra = flat()[:12]
    within = fences.fences(flat().T)
    pixel = np.array([3, 4, 5, 9, 10, 12, 13, 14, 15, 16, 20, 21])
    # Width 5: 4|5, 9|10 and 14|15 are ends and beginnings of lines.
    assert features.noise_sums(fences.in_cells(spectra.T, within), pixel, 5).n == 5


@pytest.mark.parametrize("method", ["pca", "mnf"])
def test_the_error_is_what_the_features_leave_of_a_spectrum(method):
    spectra = flat(seed=3)
    basis = learn(spectra, 4, method)
    lines = np.ascontiguousarray(spectra.T)[None]
    feature, error = features.project_lines(lines, basis)
    held = np.clip(spectra.astype(float), basis.fences.low, basis.fences.high)
    z = (held - basis.mean) / basis.scale
    rebuilt = np.linalg.lstsq(basis.axes, feature[0], rcond=None)[0].T
    np.testing.assert_allclose(error[0], np.sqrt(np.mean((z - rebuilt) ** 2, axis=1)), atol=1e-3)


def test_error_and_despiked_values_are_stored_with_the_features(tmp_path):
    reflectance = handmade_cubes.spectra(60, 9, 14)
    reflectance[30, 4, 7] += 2.0
    cube = Cube(reflectance, handmade_cubes.map_grid(60, 9))
    path = handmade_cubes.write_cube(tmp_path / "scene.zarr", cube)
    chosen = settings(clean={"despike": True, "despike_columns": True})
    _, out = run_both(tmp_path, [path], chosen)
    stored = arrays_of(out, "features")
    assert stored["error"].dtype == np.float32
    assert (stored["error"] > 0).all()
    assert stored["n_despiked"][30 * 9 + 4] == 1


def test_left_out_bands_are_not_used(tmp_path):
    cube = Cube(handmade_cubes.spectra(), handmade_cubes.map_grid())
    chosen = settings(features={"n_features": 3, "leave_out": [[1.4, 1.6], [2.0, 2.1]]})
    basis, _ = run_both(tmp_path, [handmade_cubes.write_cube(tmp_path / "scene.zarr", cube)], chosen)
    wavelength = np.linspace(1.05, 2.5, 14)
    expected = wavelength[~((wavelength >= 1.4) & (wavelength <= 1.6)) & ~((wavelength >= 2.0) & (wavelength <= 2.1))]
    assert arrays_of(basis, "basis")["wavelength"].tolist() == expected.tolist()


@given(
    arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 40)), elements=st.floats(-2, 2, width=32)),
    st.randoms(use_true_random=False),
)
def test_values_of_rank_are_those_of_the_sorted_spectra(bands, random):
    n = bands.shape[1]
    chosen = np.array(sorted(random.sample(range(n), random.randint(1, n))))
    rank = np.array(sorted(random.choices(range(len(chosen)), k=4)))
    assert_array_equal(kernels.values_of_rank(bands, chosen, rank), np.sort(bands[:, chosen], axis=1)[:, rank])


@pytest.mark.parametrize("every", [1, 4, 7, 5000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
def test_values_of_rank_do_not_trust_their_sample(every, share):
    random, n = np.random.default_rng(every), 5000
    bands = random.normal(0, 1, (3, n)).astype(np.float32)
    # Every fourth value is in the sample, which then misleads about either end.
    bands[:2, ::every] += np.array([[-50], [50]], np.float32)
    low = int(share * (n - 1))
    rank = np.array([low, low, n - 1 - low, n - 1 - low])
    found = kernels.values_of_rank(bands, np.arange(n), rank)
    assert_array_equal(found, np.sort(bands, axis=1)[:, rank])


@pytest.mark.parametrize("largest", [fences.CELLS, 2 * fences.CELLS])
@pytest.mark.parametrize("shape", [(1, 1), (5, 33), (14, 700), (31, 1500)])
def test_products_of_the_largest_cells_are_exact(shape, largest):
    random = np.random.default_rng(shape[1])
    cell = np.where(random.random(shape) < 0.5, largest, random.integers(-largest, largest + 1, shape)).astype(np.int16)
    cell[0] = largest
    whole = np.vstack([cell, np.ones(shape[1])]).astype(np.int64)
    assert_array_equal(kernels.cell_products(cell, largest), whole @ whole.T)


@pytest.mark.parametrize("outlier", [1e6, -1e6])
def test_fences_are_widened_percentiles_whatever_lies_far_out(outlier):
    spectra = np.random.default_rng(4).normal(0.2, 0.01, (5000, 37)).astype(np.float32)
    spectra[17] = outlier
    low, high = np.percentile(spectra.astype(np.float64), [1, 99], axis=0)
    within = fences.fences(spectra.T)
    assert_allclose(within.low, low - (high - low), rtol=1e-12)
    assert_allclose(within.high, high + (high - low), rtol=1e-12)


def test_spectra_are_taken_in_the_order_of_pixels():
    lines = np.random.default_rng(1).random((3, 37, 50), np.float32)
    usable = np.random.default_rng(2).random((3, 50)) < 0.6
    # Long stretches of usable pixels are turned by squares.
    usable[0], usable[1, 7:45] = True, True
    assert_array_equal(kernels.take_spectra(lines, usable), lines.transpose(0, 2, 1)[usable])
    some = lines[:, :, :41], usable[:, :41]
    assert_array_equal(kernels.take_spectra(*some), some[0].transpose(0, 2, 1)[some[1]])
    usable[2] = False
    assert_array_equal(kernels.take_bands(lines, usable), lines.transpose(0, 2, 1)[usable].T)


def test_noise_does_not_depend_on_the_order_in_which_spectra_come():
    spectra = flat()
    within, pixel = fences.fences(spectra.T), np.arange(len(spectra))
    order = np.random.default_rng(3).permutation(len(spectra))
    cell = fences.in_cells(spectra.T, within)
    one = features.noise_sums(cell, pixel, 50, 100)
    other = features.noise_sums(cell[:, order], pixel[order], 50, 100)
    assert one.n == other.n <= 100
    assert_array_equal(one.outer, other.outer)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_fences_of_few_spectra_are_widened_percentiles_too(n):
    spectra = np.random.default_rng(n).random((n, 5), np.float32)
    low, high = np.percentile(spectra.astype(np.float64), [1, 99], axis=0)
    assert_allclose(fences.fences(spectra.T).low, low - (high - low), atol=1e-12)
