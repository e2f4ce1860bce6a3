"""Small archive files, written byte by byte: TRR3, DDR and WA with PDS3 labels, MTR3 with ENVI headers."""

from pathlib import Path

import numpy as np

FILL = 65535.0
L_ROWS = [*range(179), *range(187, 446)]
S_ROWS = list(range(185, 292))

MARS_WKT = (
    'PROJCS["Own sphere",GEOGCS["GCS",DATUM["D",SPHEROID["Sphere_lat20",3393833.260758386,0.0]],'
    'PRIMEM["Reference_Meridian",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Equidistant_Cylindrical"],'
    'PARAMETER["False_Easting",0.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",0.0],'
    'PARAMETER["Standard_Parallel_1",-20.0],UNIT["Meter",1.0]]'
)

PDS_LABEL = """PDS_VERSION_ID = PDS3
PRODUCT_ID = "{product}"
PRODUCT_TYPE = {kind}
START_TIME = 2009-08-14T03:06:23.829
SPACECRAFT_CLOCK_START_COUNT = "7/0934686406.23361"
MRO:SENSOR_ID = "{sensor}"
MRO:DETECTOR_TEMPERATURE = -146.202
SOLAR_DISTANCE = 218928627.228202 <KM>
SOLAR_LONGITUDE = 320.944200
PIXEL_AVERAGING_WIDTH = 10
MRO:WAVELENGTH_FILTER = "0"
MRO:WAVELENGTH_FILE_NAME = "{record}"
OBJECT = FILE
  ^IMAGE = {image}
{table_pointer}  RECORD_TYPE = FIXED_LENGTH
  RECORD_BYTES = {record_bytes}
  FILE_RECORDS = {records}
  OBJECT = IMAGE
    LINES = {lines}
    LINE_SAMPLES = {samples}
    SAMPLE_TYPE = PC_REAL
    SAMPLE_BITS = 32
    BANDS = {bands}
    BAND_STORAGE_TYPE = {storage}
  END_OBJECT = IMAGE
{table}END_OBJECT = FILE
END
"""


def write_pds(
    folder: Path,
    product: str,
    pixels: np.ndarray,
    *,
    rows: list[int] | None = None,
    storage: str = "LINE_INTERLEAVED",
    record: str = "NONE.IMG",
) -> Path:
    """The label of a PDS3 product of `pixels` (line, sample, band): small file names, capitals inside."""
    lines, samples, bands = pixels.shape
    axes = (0, 2, 1) if storage == "LINE_INTERLEAVED" else (2, 0, 1)
    content = np.ascontiguousarray(pixels.transpose(axes)).astype("<f4").tobytes()
    image = product.upper() + ".IMG"
    table = table_pointer = ""
    record_bytes = 4 * samples
    if rows is not None:
        table_pointer = f'  ^ROWNUM_TABLE = ("{image}", {len(content) // record_bytes + 1})\n'
        table = f"  OBJECT = ROWNUM_TABLE\n    ROWS = {len(rows)}\n  END_OBJECT = ROWNUM_TABLE\n"
        content += np.array(rows, ">u2").tobytes()
        content += bytes(-len(content) % record_bytes)
    text = PDS_LABEL.format(
        product=product.upper(),
        kind="TARGETED_RDR",
        sensor="S" if "s_" in product.lower() else "L",
        record=record,
        image=f'"{image}"',
        table_pointer=table_pointer,
        table=table,
        record_bytes=record_bytes,
        records=len(content) // record_bytes,
        lines=lines,
        samples=samples,
        bands=bands,
        storage=storage,
    )
    (folder / f"{product.lower()}.img").write_bytes(content)
    label = folder / f"{product.lower()}.lbl"
    label.write_bytes(text.replace("\n", "\r\n").encode())
    return label


def trr3_pixels(lines: int = 7, samples: int = 12, bands: int = 438) -> np.ndarray:
    """I/F (line, sample, band) in which every value tells its place; fill and garbage as in real L cubes."""
    line, sample, band = np.ogrid[:lines, :samples, :bands]
    pixels = (0.1 + 0.01 * line + 0.001 * sample + 0.0005 * band).astype(np.float32)
    pixels[:, :, 0] = FILL
    pixels[:, :, 1] = np.where((line + sample) % 2, -47000.0, 47000.0)[:, :, 0]
    pixels[:, 0], pixels[:, -1] = FILL, FILL
    return pixels


def write_trr3(folder: Path, product: str = "frt0000ace5_07_if166l_trr3", **changes: object) -> Path:
    """The label of a small TRR3 cube of sensor L; `pixels` and the options of write_pds may be given."""
    pixels = changes.pop("pixels", None)
    pixels = trr3_pixels() if pixels is None else pixels
    return write_pds(folder, product, pixels, **{"rows": L_ROWS, **changes})  # type: ignore[arg-type]


def ddr_planes(lines: int = 7, samples: int = 12) -> np.ndarray:
    """DDR planes (line, sample, 14): the scene lies across the prime meridian, some pixels have fill."""
    line, sample = np.mgrid[:lines, :samples]
    planes = np.full((lines, samples, 14), 1e32, np.float32)
    planes[..., 0] = 40 + line
    planes[..., 3] = -21 - 0.01 * line + 0.001 * sample
    planes[..., 4] = (359.97 + 0.01 * sample - 0.001 * line) % 360
    planes[..., 5] = 50 + line + 0.1 * sample
    planes[2, 3, 5] = FILL
    planes[0, 0, [0, 3, 4, 5]] = FILL
    return planes


def write_ddr(folder: Path, product: str = "frt0000ace5_07_de166l_ddr1", planes: np.ndarray | None = None) -> Path:
    """The label of a small DDR."""
    return write_pds(folder, product, ddr_planes() if planes is None else planes, storage="BAND_SEQUENTIAL")


def write_wa(folder: Path, samples: int = 12, product: str = "CDR410803692813_WA0300000L_3") -> Path:
    """The label of a WA record of sensor L: linear, with smile, fill in first band and outer columns."""
    rows = np.array(L_ROWS)
    nm = 3943.0 - 6.6 * rows[None, :] + 5 + np.abs(np.arange(samples)[:, None] - 5.2)
    nm[:, 0], nm[[0, -1]] = FILL, FILL
    return write_pds(folder, product, nm[None], rows=L_ROWS)


def write_envi(
    folder: Path, name: str, pixels: np.ndarray, *, interleave: str = "bsq", dtype: str = "<f4", **fields: str
) -> Path:
    """The header of an ENVI image of `pixels` (line, sample, band), with `fields` (underscore for space)."""
    lines, samples, bands = pixels.shape
    axes = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    (folder / f"{name}.img").write_bytes(np.ascontiguousarray(pixels.transpose(axes)).astype(dtype).tobytes())
    code = {"u1": 1, "i2": 2, "f4": 4, "f8": 5, "u2": 12}[dtype[1:]]
    text = (
        f"ENVI\ndescription = {{\n  hand-made}}\nsamples = {samples}\nlines   = {lines}\nbands   = {bands}\n"
        f"header offset = 0\nfile type = ENVI Standard\ndata type = {code}\ninterleave = {interleave}\n"
        f"byte order = {int(dtype[0] == '>')}\n"
    )
    text += "".join(f"{key.replace('_', ' ')} = {value}\n" for key, value in fields.items())
    header = folder / f"{name}.hdr"
    header.write_bytes(text.replace("\n", "\r\n").encode())
    return header


def map_fields() -> dict[str, str]:
    """Header fields of a map-projected image on its own Mars sphere."""
    return {
        "map_info": "{Mars [-20.00N; 0.00E], 1.0, 1.0, 1517858.4, -1373870.9, 1.8e1, 1.8e1, units=Meters}",
        "projection_info": "{17, 3393833.3, -20.0, 0.0, 0.0, 0.0, D, Mars [-20.00N; 0.00E], units=Meters}",
        "coordinate_system_string": "{" + MARS_WKT + "}",
    }


def write_mtr3(folder: Path, name: str = "frt0000ace5_07_if166j_mtr3", **changes: str) -> Path:
    """The header of a small MTR3 cube, 6 × 9 × 11: fill, outliers, one band all fill, one bad by bbl."""
    line, sample, band = np.ogrid[:6, :9, :11]
    pixels = (0.1 + 0.01 * line + 0.001 * sample + 0.002 * band).astype(np.float32)
    pixels[:, :, 4] = FILL
    pixels[0, :], pixels[:, 8] = FILL, FILL
    pixels[3, 2, 5], pixels[4, 6, 7] = -1640.0, 20345.0
    fields = {
        "wavelength": "{" + ", ".join(f"{1000 + 60.5 * b:.2f}" for b in range(11)) + "}",
        "wavelength_units": "Nanometers",
        "bbl": "{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}",
        "data_ignore_value": "6.55350000e+04",
        **map_fields(),
        **changes,
    }
    return write_envi(folder, name, pixels, **fields)  # type: ignore[arg-type]


def write_in(folder: Path, name: str = "frt0000ace5_07_in166j_mtr3", lines: int = 6, samples: int = 9) -> Path:
    """The header of the IN product of write_mtr3: 'IR Sample' is the fourth of five bands."""
    line, sample, band = np.ogrid[:lines, :samples, :5]
    pixels = (1000.0 * band + 10.0 * sample + line + 0.2).astype(np.float32)
    pixels[:, :, 3] = (10 * sample + line + 0.2)[:, :, 0]
    pixels[0, :], pixels[:, 8] = FILL, FILL
    names = "{\n VNIR/IR Mask, VNIR Sample, VNIR Line,\n  IR Sample, IR Line}"
    return write_envi(folder, name, pixels, band_names=names, data_ignore_value="6.5535e+04", **map_fields())
