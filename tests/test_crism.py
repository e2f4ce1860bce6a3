"""What the names of CRISM products tell, on names of real files."""

import pytest

from gibbsite import crism


@pytest.mark.parametrize("spelling", [str.lower, str.upper])
def test_a_product_name_tells_observation_counter_activity_sensor_kind_and_version(spelling) -> None:
    name = crism.parse_name(spelling("frt0001458f_01_if156l_trr3.img"))
    assert name == crism.ProductName("FRT0001458F", "01", "IF", "L", "TRR", "156", "3")


@pytest.mark.parametrize(
    ("text", "activity", "sensor", "kind"),
    [
        ("hrl000040ff_07_ra183s_trr3", "RA", "S", "TRR"),
        ("frt00003e25_01_de156l_ddr1.lbl", "DE", "L", "DDR"),
        ("frt00016438_07_in164j_mtr3.hdr", "IN", "J", "MTR"),
        ("frt00016438_07_if164j_ter3", "IF", "J", "TER"),
        ("frt0000932c_07_if164j_mtr3_subsampled.tif", "IF", "J", "MTR"),
    ],
)
def test_every_kind_of_targeted_product_is_known(text: str, activity: str, sensor: str, kind: str) -> None:
    name = crism.parse_name(text)
    assert (name.activity, name.sensor, name.kind) == (activity, sensor, kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CDR410803692813_WA0000000L_3", crism.CalibrationName("WA", 1, "L", "3")),
        ("cdr450924300802_wa0300000l_3.img", crism.CalibrationName("WA", 10, "L", "3")),
        ("CDR410803692813_WA0200000S_2", crism.CalibrationName("WA", 5, "S", "2")),
        ("CDR410000000000_AT0300020L_2", crism.CalibrationName("AT", 10, "L", "2")),
        ("ADR10000000000_061C4_VS00L_8.IMG", crism.CalibrationName("VS", 1, "L", "8")),
    ],
)
def test_calibration_records_tell_kind_binning_and_sensor(text: str, expected: crism.CalibrationName) -> None:
    assert crism.parse_calibration(text) == expected
    assert crism.parse_name(text) is None


def test_map_tiles_tell_their_number_place_and_resolution() -> None:
    found = crism.parse_tile("T0897_MRRAL_05S113_0256_1_cropped.IMG")
    assert found == crism.TileName("T0897", "AL", "05S113", 256, "1")
    assert crism.parse_tile("t1865_mrrde_70n185_0256_1").activity == "DE"


@pytest.mark.parametrize(
    "text",
    ["", "cube", "frt0001458f", "frt0001458f_01_if156l", "frt0001458g_01_if156l_trr3", "frt00003e12_07_bri165j_png"],
)
def test_other_names_are_no_product_names(text: str) -> None:
    assert crism.parse_name(text) is None
    assert crism.parse_calibration(text) is None
    assert crism.parse_tile(text) is None
