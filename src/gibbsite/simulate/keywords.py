"""The blocks of keywords that the PDS3 labels of the simulated files share, and the names of the files."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version

from gibbsite.simulate.detector import FRAME, Detector

OBSERVATION = "FRT0000ACE5"
FRAMES_PER_SECOND = 3.75
_START = datetime(2008, 3, 6, 11, 42, 17, 318000)
_CLOCK = 889098147


@dataclass(frozen=True)
class Image:
    """The layout of an image file, as its label tells it."""

    name: str
    """Product, without extension, in upper case."""
    lines: int
    """Lines."""
    samples: int
    """Samples per line."""
    bands: int
    """Bands."""
    rows: bool = False
    """Whether a table of detector rows follows the image."""

    @property
    def record_bytes(self) -> int:
        """One line of one band."""
        return 4 * self.samples

    @property
    def image_records(self) -> int:
        """Records of the image alone."""
        return self.lines * self.bands

    @property
    def file_records(self) -> int:
        """Records of the file: the image, and the table padded to a whole number of records."""
        return self.image_records + (-(-2 * self.bands // self.record_bytes) if self.rows else 0)


def product(activity: str, sensor: str, kind: str) -> str:
    """Name of a product of the observation, e.g. FRT0000ACE5_07_IF166L_TRR3."""
    return f"{OBSERVATION}_07_{activity}166{sensor}_{kind}"


def wavelength_product(detector: Detector, binning: int) -> str:
    """Name of the wavelength file, which tells the binning, e.g. CDR410803692813_WA0200000L_3."""
    return f"CDR410803692813_WA0{FRAME[binning]}00000{detector.sensor}_{3 if detector.sensor == 'L' else 2}"


def transmission_product(binning: int) -> str:
    """Name of the volcano-scan record, of a scan that there never was, e.g. ADR10000000000_00000_VS20L_8."""
    return f"ADR10000000000_00000_VS{FRAME[binning]}0L_8"


def identity(image: Image, data_set: str, kind: str, version_id: str) -> str:
    """What the product is, and that it is simulated."""
    return f"""PDS_VERSION_ID                 = PDS3
/* Simulated by gibbsite: not a measurement of Mars.                   */
LABEL_REVISION_NOTE            = "written by gibbsite simulate"
DATA_SET_ID                    = "{data_set}"
PRODUCT_ID                     = "{image.name}"
INSTRUMENT_HOST_NAME           = "MARS RECONNAISSANCE ORBITER"
SPACECRAFT_ID                  = MRO
INSTRUMENT_NAME                = "COMPACT RECONNAISSANCE IMAGING
                                  SPECTROMETER FOR MARS"
INSTRUMENT_ID                  = CRISM
TARGET_NAME                    = MARS
PRODUCT_TYPE                   = {kind}
PRODUCT_VERSION_ID             = "{version_id}"
PRODUCT_CREATION_TIME          = 2008-03-07T00:00:00
PRODUCER_INSTITUTION_NAME      = "NONE: SIMULATED"
SOFTWARE_NAME                  = "gibbsite simulate"
SOFTWARE_VERSION_ID            = "{version("gibbsite")}"
"""


def observed(lines: int, activity: str) -> str:
    """When and as what the scene was seen; the same frames for every product."""
    seconds = (lines - 1) / FRAMES_PER_SECOND
    stop = _START + timedelta(seconds=seconds)
    whole, part = divmod(seconds, 1.0)
    return f"""START_TIME                     = {_START.isoformat(timespec="milliseconds")}
STOP_TIME                      = {stop.isoformat(timespec="milliseconds")}
SPACECRAFT_CLOCK_START_COUNT   = "6/0{_CLOCK}.00000"
SPACECRAFT_CLOCK_STOP_COUNT    = "6/0{_CLOCK + int(whole)}.{int(part * 65536):05d}"
ORBIT_NUMBER                   = "NULL"
OBSERVATION_TYPE               = "FRT"
OBSERVATION_ID                 = "16#{OBSERVATION[3:]}#"
MRO:OBSERVATION_NUMBER         = 16#07#
MRO:ACTIVITY_ID                = "{activity[:5]}"
MRO:SENSOR_ID                  = "{activity[5:]}\""""


def sun(unit: str = "") -> str:
    """Distance and longitude of the sun."""
    return f"""SOLAR_DISTANCE                 = 246711520.804113 <KM>
SOLAR_LONGITUDE                = 41.386205{unit}"""


def switches() -> str:
    """What was not done to the image, and which filters did not run."""
    steps = ("ATMO_CORRECTION_FLAG", "PHOTOCLIN_CORRECTION_FLAG", "THERMAL_CORRECTION_MODE")
    lines = [f'MRO:{key:<26} = "OFF"' for key in steps]
    for step in ("SPATIAL_RESAMPLING", "SPATIAL_RESCALING", "SPECTRAL_RESAMPLING"):
        lines += [f'MRO:{step + "_FLAG":<26} = "OFF"', f'MRO:{step + "_FILE":<26} = "N/A"']
    filters = (
        "HDF_SOFTWARE_NAME",
        "HDF_SOFTWARE_VERSION_ID",
        "IF_MIN_VALUE",
        "IF_MAX_VALUE",
        "REFZ_MEDIAN_BOX_WIDTH",
    )
    return "\n".join(lines + [f'MRO:{key:<26} = "N/A"' for key in filters])


def records(image: Image) -> str:
    """The layout of the file in records."""
    return f"""  RECORD_TYPE   = FIXED_LENGTH
  RECORD_BYTES  = {image.record_bytes}
  FILE_RECORDS  = {image.file_records}"""


def image_object(image: Image, storage: str, extra: str) -> str:
    """The layout of the image."""
    return f"""
  OBJECT              = IMAGE
    LINES             = {image.lines}
    LINE_SAMPLES      = {image.samples}
    SAMPLE_TYPE       = PC_REAL
    SAMPLE_BITS       = 32
    BANDS             = {image.bands}
    BAND_STORAGE_TYPE = {storage}
    {extra}
  END_OBJECT = IMAGE
"""


def row_table(image: Image) -> str:
    """The table of detector rows."""
    return f"""  OBJECT                = ROWNUM_TABLE
    NAME                = "SELECTED ROWS FROM DETECTOR"
    INTERCHANGE_FORMAT  = "BINARY"
    ROWS                = {image.bands}
    COLUMNS             = 1
    ROW_BYTES           = 2
    DESCRIPTION         = "The detector row of each band."
    OBJECT = COLUMN
      NAME           = DETECTOR_ROW_NUMBER
      DATA_TYPE      = MSB_UNSIGNED_INTEGER
      COLUMN_NUMBER  = 1
      BIT_MASK       = 2#0000000111111111#
      START_BYTE     = 1
      BYTES          = 2
      DESCRIPTION    = "Row number, counted from 0."
    END_OBJECT = COLUMN
  END_OBJECT           = ROWNUM_TABLE
"""
