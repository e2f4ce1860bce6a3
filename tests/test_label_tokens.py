"""Labels cut by one regular expression mean what pvl's own lexer makes of them."""

from pathlib import Path

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from archive_files import write_trr3
from gibbsite import pds
from gibbsite.errors import InputError
from gibbsite.label_tokens import label_lexer, pvl_lexer

ORDINARY = """PDS_VERSION_ID = PDS3\r
/* a comment = of "many" signs */ LINES = 480 ^IMAGE = ("x.img", 12 <BYTES>)
MRO:OBSERVATION_NUMBER = 16#07#  SCALE = -1.5E-05 OFFSET = 2.0E+03  RATE = 3.75<HZ>
TIME = 2008-03-06T11:42:17.318 NAMES = {'A', "B
  C"} PATH = a/b.img
OBJECT = IMAGE  END_OBJECT = IMAGE
END
"""


def tokens(lexer: object, text: str) -> list[str]:
    decoder = pds.pvl.decoder.OmniDecoder()
    found = lexer(text, g=decoder.grammar, d=decoder)  # type: ignore[operator]
    return [str(token) for token in found]


def test_an_ordinary_label_is_cut_where_pvl_cuts_it() -> None:
    assert tokens(label_lexer, ORDINARY) == tokens(pvl_lexer, ORDINARY)


@pytest.mark.parametrize("odd", ["A = 1;B = 2", "A = [1]", "A = x+y", "A = 50% B = 1", "A = 1E+5x", "A = /x"])
def test_other_labels_are_left_to_pvl(odd: str) -> None:
    text = ORDINARY.replace("LINES = 480", odd)
    assert tokens(label_lexer, text) == tokens(pvl_lexer, text)


def test_nothing_behind_end_is_looked_at() -> None:
    assert tokens(label_lexer, ORDINARY + "\x00\x01 [ garbage")[-1] == "END"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(ORDINARY) - 6), st.sampled_from("=(){}<>\"'#/*+- e1A,;\n"), st.booleans())
def test_a_label_with_a_slip_is_cut_where_pvl_cuts_it(at: int, sign: str, is_added: bool) -> None:
    text = ORDINARY[:at] + sign + ORDINARY[at + (not is_added) :]
    try:
        expected = tokens(pvl_lexer, text)
    except (TypeError, ValueError):  # a date that pvl stumbles over
        reject()
    # pvl looks on behind END.
    ends = [number for number, word in enumerate(expected) if word == "END"]
    assert tokens(label_lexer, text) in (expected, expected[: ends[0] + 1] if ends else expected)


def test_every_real_label_is_cut_where_pvl_cuts_it(shared_data: Path) -> None:
    labels = [path for path in shared_data.rglob("*") if path.suffix.lower() == ".lbl"]
    assert labels
    for path in labels:
        text = path.read_bytes().decode("latin-1")
        found = tokens(label_lexer, text)
        assert found == tokens(pvl_lexer, text)[: len(found)], path
        assert found[-1] == "END", path


def test_a_label_that_leads_the_parser_in_circles_is_refused(tmp_path: Path) -> None:
    label = write_trr3(tmp_path).with_suffix(".lbl")
    text = label.read_text("latin-1")
    assert "LINE_SAMPLES" in text
    label.write_text(text.replace("LINE_SAMPLES", "= LINE_SAMPLES", 1), "latin-1")
    with pytest.raises(InputError, match=r"broken label .*no end"):
        pds.read_label(label)


@pytest.mark.parametrize("day", ["2008-03-06", "2008-13-06", "2008-066", "08-03-06"])
@pytest.mark.parametrize("time", ["", "T11:42:17", "T11:42:17.318", "T11:42:17.318402", "T11:42:60", "T11:42:17Z"])
def test_a_date_is_what_pvl_makes_of_it(day: str, time: str) -> None:
    found = []
    for decoder in (pds._Decoder(), pds.pvl.decoder.OmniDecoder()):
        try:
            found.append(decoder.decode_datetime(day + time))
        except (TypeError, ValueError):  # it stumbles over some that are none
            found.append(None)
    assert found[0] == found[1]
