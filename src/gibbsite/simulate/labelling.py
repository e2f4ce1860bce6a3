"""PDS3 labels of the simulated files, with the keywords of the archive's own.

Every label says that its product is simulated, in a comment and in the name of the software.
"""

import numpy as np

from gibbsite.simulate.detector import Detector, L
from gibbsite.simulate.geometry import MapGrid
from gibbsite.simulate.keywords import (
    FRAMES_PER_SECOND,
    Image,
    identity,
    image_object,
    observed,
    product,
    records,
    row_table,
    sun,
    switches,
    wavelength_product,
)

DDR_BANDS = (
    "INA at areoid, deg",
    "EMA at areoid, deg",
    "Phase angle, deg",
    "Latitude, areocentric, deg N",
    "Longitude, areocentric, deg E",
    "INA at surface from MOLA, deg",
    "EMA at surface from MOLA, deg",
    "Slope magnitude from MOLA, deg",
    "MOLA slope azimuth, deg clkwise from N",
    "Elevation, meters relative to MOLA",
    "Thermal inertia, J m^-2 K^-1 s^-0.5",
    "Bolometic albedo",
    "Local solar time, hours",
    "Spare",
)
"""As the archive spells them."""

IN_BANDS = (
    "VNIR/IR Spectral Continuity Residual",
    "VNIR/IR Spatial Gradient Residual",
    "ATM Correction Spectral Shift Artifact",
    "VNIR Sample",
    "VNIR Line",
    "IR Sample",
    "IR Line",
    "VNIR/IR Ground Sampling Offset",
    "VNIR/IR Mask",
)


def sensor_label(image: Image, detector: Detector, binning: int) -> str:
    """Label of an I/F image in sensor space."""
    infrared = detector.sensor == "L"
    head = identity(image, "MRO-M-CRISM-3-RDR-TARGETED-V1.0", "TARGETED_RDR", "3")
    return f"""{head}{observed(image.lines, f"IF166{detector.sensor}")}
MRO:DETECTOR_TEMPERATURE       = {-146.127 if infrared else -57.204}
MRO:OPTICAL_BENCH_TEMPERATURE  = -45.932
MRO:SPECTROMETER_HOUSING_TEMP  = -68.415
MRO:SPHERE_TEMPERATURE         = -45.871
MRO:FPE_TEMPERATURE            =  {2.118 if infrared else 4.733}
SOURCE_PRODUCT_ID = {{
    "{wavelength_product(detector, binning)}",
    "{product("SC", detector.sensor, "EDR0")}"
}}
MRO:INVALID_PIXEL_LOCATION = {{
}}
TARGET_CENTER_DISTANCE         = "NULL" <KM>
{_exposed(detector, binning)}
{switches()}

/* Two files: the image with its table of detector rows, and a         */
/* housekeeping table, which is named as in the archive but not made.  */

OBJECT          = FILE
  ^IMAGE        =  "{image.name}.IMG"
  ^ROWNUM_TABLE = ("{image.name}.IMG", {image.image_records + 1} )
{records(image)}
{image_object(image, "LINE_INTERLEAVED", 'UNIT              = "I_OVER_F"')}
{row_table(image)}
END_OBJECT = FILE

{_housekeeping(image, detector)}
END
"""


def backplane_label(image: Image, binning: int) -> str:
    """Label of the geometry backplanes."""
    names = ",\n                         ".join(f'"{name}"' for name in DDR_BANDS)
    return f"""{identity(image, "MRO-M-CRISM-6-DDR-V1.0", "DDR", "1")}{observed(image.lines, "DE166L")}
TARGET_CENTER_DISTANCE         = 3677.204118 <KM>
{sun(" <DEGREES>")}
MRO:FRAME_RATE                 = {FRAMES_PER_SECOND} <HZ>
PIXEL_AVERAGING_WIDTH          = {binning}
MRO:INSTRUMENT_POINTING_MODE   = "DYNAMIC POINTING"
SCAN_MODE_ID                   = "SHORT"

OBJECT          = FILE
  ^IMAGE        = "{image.name}.IMG"
{records(image)}
{image_object(image, "BAND_SEQUENTIAL", f"BAND_NAME         = ({names})")}
END_OBJECT = FILE
END
"""


def wavelength_label(image: Image, detector: Detector, binning: int) -> str:
    """Label of a wavelength file."""
    version_id = image.name[-1]
    return f"""{identity(image, "MRO-M-CRISM-4/6-CDR-V1.0", "CDR", version_id)}
START_TIME                     = 2005-06-19T23:59:59.999
STOP_TIME                      = NULL
SPACECRAFT_CLOCK_START_COUNT   = "1/0803692813"
SPACECRAFT_CLOCK_STOP_COUNT    = NULL
OBSERVATION_TYPE               = NULL
OBSERVATION_ID                 = NULL
MRO:OBSERVATION_NUMBER         = NULL
MRO:ACTIVITY_ID                = NULL
SOURCE_PRODUCT_ID              = NULL
MRO:SENSOR_ID                  = "{detector.sensor}"
SAMPLING_MODE_ID               = "HYPERSPEC"
MRO:WAVELENGTH_FILE_NAME       = "{image.name}.IMG"
PIXEL_AVERAGING_WIDTH          = {binning}
MRO:WAVELENGTH_FILTER          = "0"

OBJECT          = FILE
  ^IMAGE        = "{image.name}.IMG"
  ^ROWNUM_TABLE = ("{image.name}.IMG",{image.image_records + 1} )
{records(image)}
{image_object(image, "LINE_INTERLEAVED", 'UNIT              = "NM"')}
{row_table(image)}
END_OBJECT = FILE
END
"""


def transmission_label(image: Image, binning: int) -> str:
    """Label of a volcano-scan record."""
    return f"""{identity(image, "MRO-M-CRISM-4-ADR-V1.0", "ADR", image.name[-1])}
START_TIME                     = 1980-01-01T00:00:00
STOP_TIME                      = 2009-04-15T22:13:00
SPACECRAFT_CLOCK_START_COUNT   = "1/0000000000"
SPACECRAFT_CLOCK_STOP_COUNT    = "5/0924300802"
MRO:SENSOR_ID                  = "L"
SAMPLING_MODE_ID               = "HYPERSPEC"
MRO:WAVELENGTH_FILE_NAME       = "{wavelength_product(L, binning)}.IMG"
PIXEL_AVERAGING_WIDTH          = {binning}
MRO:WAVELENGTH_FILTER          = "0"

/* Line 1: transmission of the air at each detector column.            */
/* Line 2: artefact spectra for scaling by 2007 and 1980 nm.           */
/* Line 3: artefact spectra for scaling by 2011 and 1899 nm.           */

OBJECT          = FILE
  ^IMAGE        = "{image.name}.IMG"
  /* as in the archive, the records of the first line only are counted */
  ^ROWNUM_TABLE = ("{image.name}.IMG", {image.bands + 1} )
{records(image)}
{image_object(image, "LINE_INTERLEAVED", 'DESCRIPTION       = "Atmospheric transmission"')}
{row_table(image)}
END_OBJECT = FILE
END
"""


def map_label(image: Image, grid: MapGrid) -> str:
    """Label of a map-projected image."""
    geometry = grid.geometry
    head = identity(image, "MRO-M-CRISM-5-RDR-MPTARGETED-V1.0", "MAP_PROJECTED_TARGETED_RDR", "3")
    return f"""{head}{observed(geometry.lines, image.name[15:21])}
{sun()}
PIXEL_AVERAGING_WIDTH          = {geometry.binning}

OBJECT          = FILE
  ^IMAGE        = "{image.name}.IMG"
{records(image)}
{image_object(image, "BAND_SEQUENTIAL", 'UNIT              = "I_OVER_F"')}
{_projection(image, grid)}
END_OBJECT = FILE
END
"""


def _exposed(detector: Detector, binning: int) -> str:
    """How the sensor's image was taken."""
    infrared = detector.sensor == "L"
    return f"""{sun()}
SHUTTER_MODE_ID                = "OPEN"
LIGHT_SOURCE_NAME              = "NONE"
MRO:CALIBRATION_LAMP_STATUS    = "OFF"
MRO:CALIBRATION_LAMP_LEVEL     = "N/A"
PIXEL_AVERAGING_WIDTH          = {binning}
MRO:INSTRUMENT_POINTING_MODE   = "DYNAMIC POINTING"
SCAN_MODE_ID                   = "SHORT"
MRO:FRAME_RATE                 = {FRAMES_PER_SECOND} <HZ>
MRO:EXPOSURE_PARAMETER         = {301 if infrared else 184}
SAMPLING_MODE_ID               = "HYPERSPEC"
COMPRESSION_TYPE               = "NONE"
MRO:WAVELENGTH_FILTER          = "0"
MRO:WAVELENGTH_FILE_NAME       = "{wavelength_product(detector, binning)}.IMG"
MRO:PIXEL_PROC_FILE_NAME       = "CDR6_2_0835294537_PP_{detector.sensor}_0.TAB"
MRO:INV_LOOKUP_TABLE_FILE_NAME = "CDR6_1_0000000000_LI_J_0.TAB\""""


def _housekeeping(image: Image, detector: Detector) -> str:
    """The table that a real label also describes."""
    return f"""OBJECT = FILE
  ^TRDR_HK_TABLE       = "{product("RA", detector.sensor, "HKP3")}.TAB"
  RECORD_TYPE          = FIXED_LENGTH
  RECORD_BYTES         = 1221
  FILE_RECORDS         = {image.lines}
  OBJECT               = TRDR_HK_TABLE
    NAME               = "TARGETED RDR HOUSEKEEPING TABLE"
    INTERCHANGE_FORMAT = ASCII
    ROWS               = {image.lines}
    COLUMNS            = 233
    ROW_BYTES          = 1221
    ^STRUCTURE         = "TRDRHK.FMT"
  END_OBJECT           = TRDR_HK_TABLE
END_OBJECT = FILE"""


def _projection(image: Image, grid: MapGrid) -> str:
    """Where the map lies."""
    geometry, sphere = grid.geometry, grid.geometry.radius / 1000.0
    corner = geometry.unproject(np.asarray(grid.left), np.asarray(grid.top))
    opposite = geometry.unproject(
        np.asarray(grid.left + grid.width * geometry.pixel),
        np.asarray(grid.top - grid.height * geometry.pixel),
    )
    (west, north), (east, south) = geometry.lonlat(*corner), geometry.lonlat(*opposite)
    return f"""  OBJECT = IMAGE_MAP_PROJECTION
    MAP_PROJECTION_TYPE          = "EQUIRECTANGULAR"
    A_AXIS_RADIUS                = {sphere:.9f} <KM>
    B_AXIS_RADIUS                = {sphere:.9f} <KM>
    C_AXIS_RADIUS                = {sphere:.9f} <KM>
    POSITIVE_LONGITUDE_DIRECTION = "EAST"
    CENTER_LATITUDE              = {geometry.parallel:.1f} <DEGREE>
    CENTER_LONGITUDE             = 0.0 <DEGREE>
    LINE_FIRST_PIXEL             = 1
    LINE_LAST_PIXEL              = {image.lines}
    SAMPLE_FIRST_PIXEL           = 1
    SAMPLE_LAST_PIXEL            = {image.samples}
    MAP_PROJECTION_ROTATION      = 0.0
    MAP_SCALE                    = {geometry.pixel:.1f} <METERS/PIXEL>
    MAXIMUM_LATITUDE             = {float(north):.8f} <DEGREE>
    MINIMUM_LATITUDE             = {float(south):.8f} <DEGREE>
    WESTERNMOST_LONGITUDE        = {float(west):.8f} <DEGREE>
    EASTERNMOST_LONGITUDE        = {float(east):.8f} <DEGREE>
    LINE_PROJECTION_OFFSET       = {grid.top / geometry.pixel:.4f}
    SAMPLE_PROJECTION_OFFSET     = {-grid.left / geometry.pixel:.4f}
    COORDINATE_SYSTEM_TYPE       = "BODY-FIXED ROTATING"
    COORDINATE_SYSTEM_NAME       = "PLANETOCENTRIC"
  END_OBJECT = IMAGE_MAP_PROJECTION"""
