"""PDS3 products with detached labels (TRR3, DDR, MRDR, WA, ADR): facts from the label, pixels by memory map.

GDAL's PDS driver is not used: on these files it misses the fill value and, silently, reads label text as
pixels when the image pointer is not quoted.
"""

import datetime
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import crism, image
from gibbsite.errors import InputError
from gibbsite.image import Layout
from gibbsite.label_tokens import label_lexer, pvl

_KEPT = (
    "PRODUCT_ID",
    "START_TIME",
    "SPACECRAFT_CLOCK_START_COUNT",
    "SPACECRAFT_CLOCK_STOP_COUNT",
    "MRO:SENSOR_ID",
    "PIXEL_AVERAGING_WIDTH",
    "SOLAR_DISTANCE",
    "SOLAR_LONGITUDE",
    "MRO:DETECTOR_TEMPERATURE",
    "MRO:WAVELENGTH_FILE_NAME",
    "MRO:HDF_SOFTWARE_NAME",
    "MRO:ATMO_CORRECTION_FLAG",
    "MRO:PHOTOCLIN_CORRECTION_FLAG",
    "MRO:THERMAL_CORRECTION_MODE",
)
_INTERLEAVE = {"LINE_INTERLEAVED": "bil", "BAND_SEQUENTIAL": "bsq", "SAMPLE_INTERLEAVED": "bip"}
_LONGEST_LABEL = 1 << 20
_CUT_SHORT = "it is cut short: there is no END"


@dataclass(frozen=True)
class Label:
    """A PDS3 label: what the product is, and the part that describes its image."""

    path: Path
    """The label file."""
    product_id: str
    """PRODUCT_ID, upper case."""
    facts: dict[str, Any]
    """The keys worth keeping beside a result, JSON-able; a value with a unit is {"value": …, "unit": …}."""
    file: Any
    """The FILE object (or whole label) that points to the image."""
    projection: Any
    """The IMAGE_MAP_PROJECTION object; None for an image that is not on a map."""


@dataclass(frozen=True)
class ImageFile:
    """An image and the row-number table behind it, as the label describes and the file's size confirms."""

    path: Path
    """The image file."""
    layout: Layout
    """Where its pixels are."""
    n_rows: int
    """Entries of the table of detector rows; 0 when the product has none."""
    rows_offset: int
    """Byte where that table starts."""
    remarks: tuple[str, ...] = ()
    """Where the file's size had to settle what the label says."""


_USUAL_DATE = re.compile(r"\d{4}-\d\d-\d\dT(?!24)\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?", re.ASCII)


class _Decoder(pvl.decoder.OmniDecoder):
    """pvl's, which tries 21 formats of dates on every word of a label: half of the time it takes to read one."""

    def decode_datetime(self, value: str) -> Any:
        if not value[:1].isdigit():
            raise ValueError
        if _USUAL_DATE.fullmatch(value):
            # A date that is none, or has 60 seconds, is pvl's business.
            with suppress(ValueError):
                return datetime.datetime.fromisoformat(value)
        return super().decode_datetime(value)


def read_label(path: Path) -> Label:
    """The label at `path`; an InputError when it is no PDS3 label of a product with an image."""
    try:
        text = path.read_bytes()[:_LONGEST_LABEL].decode("latin-1")
    except OSError as error:
        raise InputError(f"{path}: cannot read the label ({error.strerror}); check the path") from None
    if "PDS_VERSION_ID" not in text:
        raise InputError(f"{path}: not a PDS3 label (no PDS_VERSION_ID in it); give the product's own .lbl")
    try:
        module = pvl.loads(text, parser=pvl.parser.OmniParser(decoder=_Decoder(), lexer_fn=label_lexer))
    except Exception as error:  # pvl raises many kinds for broken text; all mean the same to the user
        what = " ".join(str(error.args[-1] if error.args else error).split()) if _ends(text) else _CUT_SHORT
        raise InputError(f"{path}: broken label ({what}); fetch it anew") from None
    files = [module, *module.getall("FILE")] if "FILE" in module else [module]
    with_image = [part for part in files if hasattr(part, "get") and "^IMAGE" in part and "IMAGE" in part]
    if not with_image and not _ends(text):
        raise InputError(f"{path}: broken label ({_CUT_SHORT}); fetch it anew")
    if not with_image:
        raise InputError(f"{path}: label without an image (no ^IMAGE with an IMAGE object); give a cube's label")
    product_id = _key(module, "PRODUCT_ID", path)
    _key(module, "PRODUCT_TYPE", path)
    facts = {key: _plain(value) for key, value in module.items() if key in _KEPT or "FILTER" in key}
    projection = next((part["IMAGE_MAP_PROJECTION"] for part in files if "IMAGE_MAP_PROJECTION" in part), None)
    return Label(path, str(product_id).upper(), facts, with_image[0], projection)


def _ends(text: str) -> bool:
    """Whether a label was written to its end."""
    return re.search(r"^\s*END\s*$", text, re.MULTILINE) is not None


def image_shape(label: Label) -> tuple[int, int, int]:
    """(lines, samples, bands) of the label's image."""
    lines, samples, bands = (_count(label.file["IMAGE"], key, label.path) for key in ("LINES", "LINE_SAMPLES", "BANDS"))
    return lines, samples, bands


def image_file(label: Label) -> ImageFile:
    """The label's image, found beside the label and checked against its size."""
    source = label.path
    name, offset = _pointer(label)
    path = image.find(source.parent, name)
    if path is None:
        raise InputError(f"{source}: names the image {name}, which is not beside it; put both in one folder")
    layout = Layout(*image_shape(label), dtype="<f4", interleave=interleave(label), offset=offset)
    n_rows, rows_offset = _row_table(label, layout)
    if n_rows and rows_offset < layout.end and (rows_offset - offset) * layout.lines == layout.end - offset:
        # Labels of volcano scans count the records of the first line only; the table stands behind the last.
        rows_offset = layout.end
    expected, record_bytes = layout.end, 1
    if "FILE_RECORDS" in label.file:
        record_bytes = _count(label.file, "RECORD_BYTES", source)
        expected = _count(label.file, "FILE_RECORDS", source) * record_bytes
    if not n_rows and expected != layout.end == path.stat().st_size:
        remark = f"{source.name} counts {expected} bytes in records, but image and file have {layout.end}"
        return ImageFile(path, layout, 0, 0, (remark,))
    # Less than the room would be read askew: the last record of the image may be padded, no more.
    room = rows_offset if n_rows else expected
    if not room - record_bytes < layout.end <= room or rows_offset + 2 * n_rows > expected:
        raise InputError(
            f"{source}: {layout.lines} lines × {layout.samples} samples × {layout.bands} bands do not fill the "
            f"{room} bytes that its records give the image; the label contradicts itself: fetch it anew"
        )
    image.check_size(path, expected, source)
    return ImageFile(path=path, layout=layout, n_rows=n_rows, rows_offset=rows_offset)


def bare_image(label: Label) -> ImageFile | None:
    """The label's image without the table behind it, to look at in a file that ends too soon; None when it is cut off.

    Only to tell what is there: nothing that is trusted may come from it.
    """
    name, offset = _pointer(label)
    path = image.find(label.path.parent, name)
    layout = Layout(*image_shape(label), dtype="<f4", interleave=interleave(label), offset=offset)
    is_whole = path is not None and path.is_file() and path.stat().st_size >= layout.end
    return ImageFile(path, layout, 0, 0) if path is not None and is_whole else None


def fill_values(label: Label) -> tuple[float, ...]:
    """What stands where there is no data: CRISM's 65535, which its labels do not name, and what the label names."""
    named = label.file["IMAGE"].get("MISSING_CONSTANT")
    is_number = isinstance(named, int | float) and not isinstance(named, bool)
    return (crism.FILL, float(named)) if is_number and named != crism.FILL else (crism.FILL,)


def band_names(label: Label) -> tuple[str, ...]:
    """The names of the bands; empty when the label has none, or not one for each."""
    names = label.file["IMAGE"].get("BAND_NAME")
    names = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    return tuple(" ".join(str(name).split()) for name in names) if len(names) == image_shape(label)[2] else ()


def open_pixels(file: ImageFile) -> NDArray[Any]:
    """The pixels (line, sample, band), memory-mapped."""
    return image.open_pixels(file.path, file.layout)


def row_numbers(file: ImageFile) -> NDArray[np.int64] | None:
    """Detector row of each band, from the table behind the image; None when there is no such table."""
    if not file.n_rows:
        return None
    stored = np.fromfile(file.path, dtype=">u2", count=file.n_rows, offset=file.rows_offset)
    return (stored & 0x1FF).astype(np.int64)  # the label's BIT_MASK: nine bits count


def _pointer(label: Label) -> tuple[str, int]:
    """Image file name and byte offset from ^IMAGE: "NAME" or ("NAME", record)."""
    pointer = label.file["^IMAGE"]
    if isinstance(pointer, str):
        return pointer, 0
    if isinstance(pointer, list) and len(pointer) == 2 and isinstance(pointer[1], int):
        return str(pointer[0]), (pointer[1] - 1) * _count(label.file, "RECORD_BYTES", label.path)
    raise InputError(f"{label.path}: found ^IMAGE = {pointer}, expected the name of the image file")


def interleave(label: Label) -> str:
    """The interleave of 32-bit PC_REAL pixels; other pixels are refused."""
    part, path = label.file["IMAGE"], label.path
    found = _key(part, "SAMPLE_TYPE", path), _key(part, "SAMPLE_BITS", path)
    if found != ("PC_REAL", 32):
        raise InputError(f"{path}: found {found[1]}-bit {found[0]} samples, expected 32-bit PC_REAL (I/F or geometry)")
    storage = str(_key(part, "BAND_STORAGE_TYPE", path))
    if storage not in _INTERLEAVE:
        raise InputError(f"{path}: found BAND_STORAGE_TYPE {storage}, expected one of {', '.join(_INTERLEAVE)}")
    return _INTERLEAVE[storage]


def _row_table(label: Label, layout: Layout) -> tuple[int, int]:
    """Entries and byte offset of the row-number table; (0, 0) when the label has none."""
    if "ROWNUM_TABLE" not in label.file or "^ROWNUM_TABLE" not in label.file:
        return 0, 0
    rows = _count(label.file["ROWNUM_TABLE"], "ROWS", label.path)
    if rows != layout.bands:
        raise InputError(
            f"{label.path}: {rows} row numbers for {layout.bands} bands; the label is broken: fetch it anew"
        )
    record = label.file["^ROWNUM_TABLE"][-1]
    if not isinstance(record, int) or record < 1:
        raise InputError(f"{label.path}: found ^ROWNUM_TABLE at record {record}, expected a number from 1")
    return rows, (record - 1) * _count(label.file, "RECORD_BYTES", label.path)


def _key(part: Any, key: str, path: Path) -> Any:
    if key not in part:
        raise InputError(f"{path}: label lacks {key}; fetch it anew")
    return part[key]


def _count(part: Any, key: str, path: Path) -> int:
    value = _key(part, key, path)
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{path}: found {key} = {value}, expected a whole number from 1; fetch the label anew")
    return value


def _plain(value: Any) -> Any:
    """A label value as JSON can hold it."""
    if isinstance(value, pvl.collections.Quantity):
        return {"value": _plain(value.value), "unit": str(value.units)}
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float) or value is None else str(value)
