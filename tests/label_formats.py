"""The same lopsided shapes as label files of every format, written with the tools of each where there are any."""

import csv
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import geopandas
import numpy as np
import rasterio
import shapely
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine
from spectral.io import envi

import handmade_cubes
from gibbsite.scene import Grid
from handmade_cubes import HEIGHT, MAP_SYSTEM, WIDTH

GRID = handmade_cubes.map_grid()
RADIUS = 3_394_839.8133
SHAPES = {
    "olivine": [(2, 1), (7, 1), (7, 6), (5, 6), (5, 9), (2, 9)],
    "Fe/Mg smectité": [(0, 12), (4, 12), (4, 22), (2, 22), (2, 17), (0, 17)],
    "kieserite": [(6, 14), (9, 14), (9, 16), (6, 16)],
}
"""Class -> corners (column, row) of an L, another L and a bar: no two alike, none the same when x and y are swapped."""
COLOURS = {"olivine": "#0a8020", "Fe/Mg smectité": "#b41ec8", "kieserite": "#28a0f0"}
NAMES = sorted(SHAPES)


def pixels(name: str) -> np.ndarray:
    """(y, x) whether the shape holds a pixel's centre, by counting crossings of its edges to the right."""
    row, col = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    corners = SHAPES[name]
    inside = np.zeros((HEIGHT, WIDTH), bool)
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        if x0 == x1:
            inside ^= (row > min(y0, y1)) & (row < max(y0, y1)) & (col < x0)
    return inside


def expected_known() -> np.ndarray:
    """(y, x) index into the sorted names, -1 none."""
    known = np.full((HEIGHT, WIDTH), -1)
    for index, name in enumerate(NAMES):
        known[pixels(name)] = index
    return known


# --- places


def on_map(col: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, _, c, _, e, f = GRID.transform
    return a * np.asarray(col) + c, e * np.asarray(row) + f


def in_degrees(col: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitude and latitude by the projection's formula."""
    x, y = on_map(col, row)
    return 70.0 + np.degrees(x / (RADIUS * np.cos(np.radians(-20.0)))), np.degrees(y / RADIUS)


def polygons(place: Callable = on_map) -> dict[str, shapely.Polygon]:
    return {name: shapely.Polygon(np.stack(place(*np.array(corners).T), axis=1)) for name, corners in SHAPES.items()}


def frame(place: Callable = on_map, crs: object = MAP_SYSTEM, *, coloured: bool = True) -> geopandas.GeoDataFrame:
    drawn = polygons(place)
    columns = {"class": list(drawn)} | ({"colour": [COLOURS[name] for name in drawn]} if coloured else {})
    return geopandas.GeoDataFrame(columns, geometry=list(drawn.values()), crs=crs)


# --- writers: each gives back the path to name


def geopackage(folder: Path, _grid: Grid) -> Path:
    frame().to_file(folder / "labels.gpkg")
    return folder / "labels.gpkg"


def shapefile(folder: Path, _grid: Grid) -> Path:
    frame().to_file(folder / "labels.shp")
    return folder / "labels.shp"


def geojson(folder: Path, _grid: Grid) -> Path:
    frame(in_degrees, "IAU_2015:49900").to_file(folder / "labels.geojson", engine="pyogrio")
    return folder / "labels.geojson"


def roi_xml(folder: Path, _grid: Grid, place: Callable | None = None, system: str = "none") -> Path:
    """Polygons of ENVI's regions, in pixels or in a coordinate system."""
    root = ET.Element("RegionsOfInterest", version="1.1")
    for name, corners in SHAPES.items():
        region = ET.SubElement(root, "Region", name=name, color=",".join(map(str, rgb(COLOURS[name]))))
        geometry = ET.SubElement(region, "GeometryDef")
        ET.SubElement(geometry, "CoordSysStr").text = system
        ring = ET.SubElement(ET.SubElement(ET.SubElement(geometry, "Polygon"), "Exterior"), "LinearRing")
        closed = np.array([*corners, corners[0]], float)
        points = closed if place is None else np.stack(place(*closed.T), axis=1)
        ET.SubElement(ring, "Coordinates").text = " ".join(f"{value:.12g}" for value in points.ravel())
    ET.ElementTree(root).write(folder / "labels.xml", encoding="UTF-8", xml_declaration=True)
    return folder / "labels.xml"


def roi_xml_on_map(folder: Path, grid: Grid) -> Path:
    return roi_xml(folder, grid, on_map, MAP_SYSTEM)


def roi_xml_points(folder: Path, _grid: Grid) -> Path:
    root = ET.Element("RegionsOfInterest", version="1.1")
    for name in SHAPES:
        region = ET.SubElement(root, "Region", name=name, color=",".join(map(str, rgb(COLOURS[name]))))
        geometry = ET.SubElement(region, "GeometryDef")
        ET.SubElement(geometry, "CoordSysStr").text = "none"
        for row, col in np.argwhere(pixels(name)):
            ET.SubElement(ET.SubElement(geometry, "Point"), "Coordinates").text = f"{col + 0.5} {row + 0.5}"
    ET.ElementTree(root).write(folder / "points.xml", encoding="UTF-8", xml_declaration=True)
    return folder / "points.xml"


@dataclass(frozen=True)
class RoiText:
    """A text export of regions."""

    columns: tuple[str, ...] = ("ID", "X", "Y", "Map X", "Map Y", "Lat", "Lon", "B1")
    encoding: str = "latin-1"

    def __call__(self, folder: Path, _grid: Grid) -> Path:
        head = ["; ENVI Output of ROIs (4.8) [Mon Nov 16 10:00:00 2009]", f"; Number of ROIs: {len(SHAPES)}"]
        head += [f"; File Dimension: {WIDTH} x {HEIGHT}"]
        body = []
        for name in SHAPES:
            places = np.argwhere(pixels(name))
            colour = ", ".join(map(str, rgb(COLOURS[name])))
            head += [";", f"; ROI name: {name}", f"; ROI rgb value: {{{colour}}}", f"; ROI npts: {len(places)}"]
            for number, (row, col) in enumerate(places, start=1):
                east, north = in_degrees(col + 0.5, row + 0.5)
                x, y = on_map(col + 0.5, row + 0.5)
                told = [number, col + 1, row + 1, f"{x:.2f}", f"{y:.2f}", f"{north:.8f}", f"{east:.8f}", 0.25]
                full = dict(zip(("ID", "X", "Y", "Map X", "Map Y", "Lat", "Lon", "B1"), told, strict=True))
                body.append("  ".join(str(full[column]) for column in self.columns))
            body.append("")
        lines = [*head, ";   " + "     ".join(self.columns), *body]
        (folder / "labels.txt").write_text("\r\n".join(lines), encoding=self.encoding)
        return folder / "labels.txt"


def csv_pixels(folder: Path, _grid: Grid) -> Path:
    rows = [(name, row, col, COLOURS[name]) for name in SHAPES for row, col in np.argwhere(pixels(name))]
    return write_csv(folder / "labels.csv", ("class", "row", "col", "colour"), rows)


def csv_degrees(folder: Path, _grid: Grid) -> Path:
    rows = []
    for name in SHAPES:
        for row, col in np.argwhere(pixels(name)):
            # Not the middle of the pixel: towards its lower left corner.
            east, north = in_degrees(col + 0.2, row + 0.85)
            rows.append((f"{north:.9f}", f"{east:.9f}", name, " ".join(map(str, rgb(COLOURS[name])))))
    return write_csv(folder / "labels.csv", ("Lat", "Lon", "class", "Color"), rows, delimiter=";", encoding="utf-16")


def write_csv(path: Path, head: tuple, rows: list, delimiter: str = ",", encoding: str = "utf-8") -> Path:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def values(number: Mapping[str, int]) -> np.ndarray:
    """(y, x) uint8 class numbers."""
    found = np.zeros((HEIGHT, WIDTH), np.uint8)
    for name, value in number.items():
        found[pixels(name)] = value
    return found


NUMBER = {"olivine": 3, "Fe/Mg smectité": 1, "kieserite": 7}


@dataclass(frozen=True)
class Tiff:
    """A GeoTIFF on the grid of the scene."""

    path: Path
    grid: Grid

    def write(
        self, *bands: np.ndarray, names: tuple = (), tags: Mapping | None = None, colours: Mapping | None = None
    ) -> Path:
        on_grid = {"crs": self.grid.crs, "transform": Affine(*self.grid.transform)} if self.grid.transform else {}
        profile = {"driver": "GTiff", "count": len(bands), "dtype": bands[0].dtype, "nodata": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with rasterio.open(self.path, "w", height=HEIGHT, width=WIDTH, **profile, **on_grid) as raster:
                for number, band in enumerate(bands, start=1):
                    raster.write(band, number)
                    if names:
                        raster.set_band_description(number, names[number - 1])
                raster.update_tags(**(tags or {}))
                if colours:
                    raster.write_colormap(1, colours)
        return self.path


def tiff_tags(folder: Path, grid: Grid) -> Path:
    colours = {NUMBER[name]: (*rgb(COLOURS[name]), 255) for name in SHAPES}
    tags = {f"CLASS_{value}": name for name, value in NUMBER.items()}
    return Tiff(folder / "labels.tif", grid).write(values(NUMBER), tags=tags, colours=colours)


def tiff_categories(folder: Path, grid: Grid) -> Path:
    """Names as GDAL keeps them beside the raster."""
    colours = {NUMBER[name]: (*rgb(COLOURS[name]), 255) for name in SHAPES}
    path = Tiff(folder / "labels.tif", grid).write(values(NUMBER), colours=colours)
    root = ET.Element("PAMDataset")
    listed = ET.SubElement(ET.SubElement(root, "PAMRasterBand", band="1"), "CategoryNames")
    by_value = {value: name for name, value in NUMBER.items()}
    for value in range(max(by_value) + 1):
        ET.SubElement(listed, "Category").text = by_value.get(value, "")
    ET.ElementTree(root).write(folder / "labels.tif.aux.xml")
    return path


def tiff_bands(folder: Path, grid: Grid) -> Path:
    masks = [np.where(pixels(name), 255, 0).astype(np.uint8) for name in SHAPES]
    return Tiff(folder / "masks.tif", grid).write(*masks, names=tuple(SHAPES))


def envi_classes(folder: Path, grid: Grid) -> Path:
    """A classification image as Spectral Python writes it, with the place that ENVI would add."""
    number = {name: index for index, name in enumerate(SHAPES, start=1)}
    metadata = {}
    if grid.transform:
        a, _, c, _, e, f = grid.transform
        metadata["map info"] = ["Equirectangular", 1, 1, repr(c), repr(f), repr(a), repr(-e), "units=Meters"]
        metadata["coordinate system string"] = "{" + handmade_cubes.CRS.from_wkt(grid.crs).to_wkt("WKT1_ESRI") + "}"
    envi.save_classification(
        str(folder / "labels.hdr"),
        values(number),
        class_names=["Unclassified", *SHAPES],
        class_colors=[(0, 0, 0), *(rgb(COLOURS[name]) for name in SHAPES)],
        metadata=metadata,
    )
    return folder / "labels.hdr"


def rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


ON_THE_GROUND: dict[str, Callable[[Path, Grid], Path]] = {
    "GeoPackage": geopackage,
    "Shapefile": shapefile,
    "GeoJSON": geojson,
    "ROI XML on the map": roi_xml_on_map,
    "ROI text, degrees": RoiText(("ID", "Lat", "Lon", "B1")),
    "CSV, degrees": csv_degrees,
}
IN_PIXELS: dict[str, Callable[[Path, Grid], Path]] = {
    "ROI XML in pixels": roi_xml,
    "ROI XML points": roi_xml_points,
    "ROI text": RoiText(),
    "ROI text, UTF-8": RoiText(("ID", "X", "Y"), "utf-8"),
    "CSV, pixels": csv_pixels,
    "GeoTIFF with tags": tiff_tags,
    "GeoTIFF with categories": tiff_categories,
    "GeoTIFF of masks": tiff_bands,
    "ENVI classification": envi_classes,
}
FORMATS = ON_THE_GROUND | IN_PIXELS
