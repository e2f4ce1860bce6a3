"""Small hand-made results of the steps before products and report: lopsided, with odd class names."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import raster, store
from gibbsite.model import Model, named_components, write_model
from gibbsite.palette import class_colours
from gibbsite.scene import Grid

MARS_MAP = (
    'PROJCS["Mars equirectangular",GEOGCS["Mars",DATUM["Mars sphere",SPHEROID["Mars sphere",3394839.8133,0]],'
    'PRIMEM["Reference meridian",0],UNIT["degree",0.0174532925199433]],PROJECTION["Equirectangular"],'
    'PARAMETER["standard_parallel_1",20],PARAMETER["central_meridian",74.7],PARAMETER["false_easting",0],'
    'PARAMETER["false_northing",0],UNIT["metre",1]]'
)
MARS_SPHERE = (
    'GEOGCS["Mars",DATUM["Mars sphere",SPHEROID["Mars sphere",3396190,0]],PRIMEM["Reference meridian",0],'
    'UNIT["degree",0.0174532925199433],AXIS["Latitude",NORTH],AXIS["Longitude",EAST]]'
)
NAMES = ("Fe/Mg smectite", 'bassanite <hydrated & "dry">', "olivine", "ulexit (Ätna)", "new-1", "new-2")
N_KNOWN = 4


@dataclass(frozen=True)
class Results:
    """Where the hand-made results lie and what is in them."""

    folder: Path
    classes: list[dict[str, object]]
    scenes: tuple[str, ...]
    code: dict[str, NDArray[np.uint16]] = field(default_factory=dict)
    probability: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def model(self) -> Path:
        return self.folder / "model.zarr"

    @property
    def chains(self) -> list[Path]:
        return [self.folder / "chains" / f"{chain}.zarr" for chain in (1, 2)]

    def cube(self, scene: str) -> Path:
        return self.folder / "cubes" / f"{scene}.zarr"

    def layer(self, scene: str, layer: str) -> Path:
        return self.folder / "maps" / f"{scene}_{layer}.tif"


def map_grid(height: int, width: int) -> Grid:
    """A north-up grid of 18 m pixels."""
    return Grid(height, width, crs=MARS_MAP, transform=(18.0, 0.0, 4_211.0, 0.0, -18.0, -1_250_077.0))


def sensor_grid(height: int, width: int, longitude: float = 74.7, latitude: float = -21.3) -> Grid:
    """A sensor-space grid, rotated and bent, with ground points every 8 pixels and on the far edges."""
    row = np.unique(np.append(np.arange(0, height, 8), height - 1))
    col = np.unique(np.append(np.arange(0, width, 8), width - 1))
    points = []
    for r in row:
        for c in col:
            lon, lat = ground_truth(r + 0.5, c + 0.5, longitude, latitude)
            points.append((float(r), float(c), float(lon), float(lat)))
    return Grid(height, width, crs=MARS_SPHERE, ground_points=tuple(points))


def polar_grid(height: int, width: int, sign: float = 1.0) -> Grid:
    """A sensor-space grid of 18 m pixels with a pole at its centre."""
    row, col = (np.unique(np.append(np.arange(0, n, 8), n - 1)) for n in (height, width))
    r, c = (values.ravel() for values in np.meshgrid(row, col, indexing="ij"))
    x, y = 18.0 * (c + 0.5 - width / 2), 18.0 * (height / 2 - r - 0.5)
    away = np.degrees(2 * np.arctan(np.hypot(x, y) / (2 * 3_396_190.0)))
    longitude = np.degrees(np.arctan2(x, -sign * y))
    points = zip(r.tolist(), c.tolist(), longitude.tolist(), (sign * (90.0 - away)).tolist(), strict=True)
    return Grid(
        height, width, crs=MARS_SPHERE, ground_points=tuple((float(a), float(b), d, e) for a, b, d, e in points)
    )


def ground_truth(
    row: NDArray[np.float64] | float, col: NDArray[np.float64] | float, longitude: float, latitude: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude of points of the sensor grid (pixel centres end in .5), about 18 m per pixel."""
    degrees = 18.0 / 59_274.7
    bend = 0.002 * np.square(np.asarray(col) - 20.0)
    north = -(0.97 * np.asarray(row) + 0.20 * np.asarray(col) + bend)
    east = 0.98 * np.asarray(col) - 0.19 * np.asarray(row) + 0.3 * bend
    return longitude + degrees * east / np.cos(np.radians(latitude)), latitude + degrees * north


def class_map(height: int, width: int, n_classes: int, seed: int) -> NDArray[np.uint16]:
    """Blobs of all classes with a corner of missing pixels and some single-pixel noise."""
    random = np.random.Generator(np.random.Philox(seed))
    y, x = np.mgrid[0:height, 0:width]
    centre = random.uniform(0, 1, (4 * n_classes, 2)) * (height, width)
    reach = random.uniform(0.5, 1.6, 4 * n_classes)
    distance = np.hypot(y[..., None] - centre[:, 0], x[..., None] - centre[:, 1]) / reach
    code = (distance.argmin(axis=-1) % n_classes + 1).astype(np.uint16)
    noisy = random.uniform(size=code.shape) < 0.02
    code[noisy] = random.integers(1, n_classes + 1, int(noisy.sum()))
    code[(y + 2 * x) < 0.3 * height] = 0
    return code


def spectrum_of(k: int, wavelength: NDArray[np.float64]) -> NDArray[np.float64]:
    """A sloping continuum with two absorptions that differ between classes."""
    slope = 0.16 + 0.015 * k + 0.02 * np.sin(wavelength + k)
    for centre, width, depth in ((1.9 + 0.01 * k, 0.03, 0.05), (2.15 + 0.06 * k, 0.02 + 0.002 * k, 0.08)):
        slope = slope * (1 - depth * np.exp(-0.5 * np.square((wavelength - centre) / width)))
    return slope


DIAGNOSTICS = {
    "n_draws": 96,
    "traces": {
        "log_joint": {"r_hat": 1.3712, "bulk_size": 12.4},
        "n_classes": {"r_hat": None, "bulk_size": None},
        "n_components": {"r_hat": 1.0, "bulk_size": 88.0},
    },
    "moves": {
        "split": {"proposed": 1234, "accepted": 56},
        "class_merge": {"proposed": 7, "accepted": 0},
        "class_split": {"proposed": 0, "accepted": 0},
    },
    "n_sampled_pixels": 20_000,
    "pairs": [{"chains": [1, 2], "rand_index": 0.6123, "same_verdict": 0.9876}],
    "concerns": ["chains draw <different> maps"],
}


def make_results(folder: Path, shapes: dict[str, tuple[int, int]] | None = None) -> Results:
    """Cubes, maps, model and two chains; the first scene on a map, the others in sensor space."""
    shapes = shapes or {"frt0000aaaa": (41, 67), "frt0000bbbb": (29, 53)}
    colours = class_colours(N_KNOWN, len(NAMES) - N_KNOWN)
    code = {name: class_map(*shape, len(NAMES), seed) for seed, (name, shape) in enumerate(shapes.items())}
    classes: list[dict[str, object]] = [
        {
            "code": k,
            "name": name,
            "is_known": k <= N_KNOWN,
            "colour": colours[k - 1],
            "n_pixels": int(sum((values == k).sum() for values in code.values())),
            "n_components": 1 + k % 3,
            "n_classified": 100 * k,
            "n_new_component": 17 * k if k <= N_KNOWN else 0,
        }
        for k, name in enumerate(NAMES, start=1)
    ]
    results = Results(folder, classes, tuple(shapes), code)
    for number, (name, (height, width)) in enumerate(shapes.items()):
        grid = map_grid(height, width) if number == 0 else sensor_grid(height, width)
        results.probability[name] = _write_maps(results, name, grid, number)
        _write_cube(results, name, grid, number)
    _write_model(results.model, classes)
    for chain, path in enumerate(results.chains, start=1):
        _write_chain(path, chain)
    return results


def _write_model(path: Path, classes: list[dict[str, object]]) -> None:
    """A model with the right numbers of components, whose draws are all alike."""
    class_of = np.repeat(np.arange(len(classes)), [int(str(item["n_components"])) for item in classes])
    n_classes, n_components, n_features = len(classes), len(class_of), 2
    model = Model(
        class_of=class_of,
        log_weight=np.full((1, n_components), -np.log(n_components)),
        mean=np.arange(2.0 * n_components).reshape(1, n_components, n_features),
        centre=np.zeros((1, n_classes, n_features)),
        whiten=np.tile(np.eye(n_features), (1, n_classes, 1, 1)),
        step=2**-10,
        basis="0" * 64,
        classes=classes,
    )
    write_model(path, model, seed=7, diagnostics=DIAGNOSTICS)


def _write_maps(results: Results, name: str, grid: Grid, seed: int) -> NDArray[np.float32]:
    random = np.random.Generator(np.random.Philox(100 + seed))
    probability = random.uniform(0.4, 1.0, (grid.height, grid.width)).astype(np.float32)
    probability[results.code[name] == 0] = np.nan
    raster.write_class_map(results.layer(name, "class"), grid, results.classes, [(0, results.code[name])])
    for layer in ("probability", "entropy", "unknown"):
        raster.write_layer(results.layer(name, layer), grid, [(0, probability)], layer)
    class_of = np.repeat(np.arange(len(NAMES)), [int(str(item["n_components"])) for item in results.classes])
    first = np.append(0, 1 + np.searchsorted(class_of, np.arange(len(NAMES)))).astype(np.uint16)
    component = first[results.code[name]]
    named = named_components(results.classes, class_of)
    raster.write_class_map(results.layer(name, "component"), grid, named, [(0, component)], "component")
    return probability


def _write_cube(results: Results, name: str, grid: Grid, seed: int) -> None:
    random = np.random.Generator(np.random.Philox(200 + seed))
    wavelength = np.concatenate([np.arange(1.05, 1.65, 0.013), np.arange(1.75, 2.6, 0.013)])
    good = np.ones(len(wavelength), bool)
    good[:2] = False
    means = np.stack([np.full_like(wavelength, np.nan), *(spectrum_of(k, wavelength) for k in range(len(NAMES)))])
    shade = random.uniform(0.85, 1.15, (grid.height, grid.width, 1))
    cube = (means[results.code[name]] * shade + random.normal(0, 0.002, (*shade.shape[:2], 1))).astype(np.float32)
    cube[..., 0] = 40_000.0
    cube[3, 30:40, 12] = np.nan
    valid = results.code[name] > 0
    valid[5, 40:45] = False
    cube[5, 40:45] = 7.0
    provenance = {
        "product": f"{name.upper()}_07_IF168J_MTR3",
        "sensor": "J",
        "files": [{"name": f"{name}.img", "sha256": f"{seed:064x}", "bytes": 123_456_789 + seed}],
        "facts": {
            "SOLAR_LONGITUDE": 133.7,
            "MRO:FRAME_RATE": "3.75 Hz",
            "filters": [1, 2],
            "START_TIME": "2007-01-13T05:59:08.707",
        },
        "wavelength_source": "header",
        "gibbsite": "0.1.0",
    }
    with store.create(results.cube(name), "cube", scene=name, grid=grid.to_json(), provenance=provenance) as group:
        chunks = (7, grid.width, len(wavelength))
        store.add_array(group, "reflectance", ("y", "x", "band"), cube, chunks=chunks)
        store.add_array(group, "wavelength", ("band",), wavelength)
        store.add_array(group, "good_band", ("band",), good)
        store.add_array(group, "valid", ("y", "x"), valid)
        column = np.tile(np.arange(grid.width, dtype=np.int16), (grid.height, 1))
        store.add_array(group, "detector_column", ("y", "x"), column)


def _write_chain(path: Path, chain: int) -> None:
    sweep = np.arange(60.0)
    trace = {
        "trace_log_joint": -2e5 * (1 + 0.1 * np.exp(-sweep / (4 + chain))) + 20 * np.sin(sweep * chain),
        "trace_n_classes": np.round(6 + 3 * np.exp(-sweep / 9)),
        "trace_n_components": np.round(11 + chain + 40 * np.exp(-sweep / 7)),
        "trace_seconds": np.full(60, 0.04),
    }
    with store.create(path, "chain", chain=chain, settings={"seed": 1, "fit": {"sweeps": 60}}) as group:
        for name, values in trace.items():
            store.add_array(group, name, ("sweep",), values)
