"""The kinds of images gibbsite knows: what each holds, and what it is for."""

from dataclasses import dataclass

from gibbsite import crism

_HOLDS = {
    "IF": "I/F",
    "RA": "radiance",
    "AL": "Lambert albedo",
    "DE": "geometry of every pixel",
    "IN": "origin and quality of every map pixel",
    "SR": "summary parameters of refined spectra",
    "SU": "summary parameters",
    "WV": "wavelengths",
}
_SPACE = {
    "TRR": "in sensor space",
    "DDR": "in sensor space",
    "TER": "in sensor space",
    "MTR": "on a map",
}
_CALIBRATION = {
    "WA": "wavelength of every detector pixel",
    "VS": "transmission of the air (volcano scan) with artefact spectra",
    "AT": "transmission of the air (volcano scan)",
}
_PURPOSE = {
    "DDR": "it goes with its TRR3 cube: gibbsite ingest CUBE --ddr FILE",
    "WA": "it goes with a TRR3 cube: gibbsite ingest CUBE --wavelengths FILE",
    "VS": "it goes with the atmosphere correction of L cubes",
    "AT": "it goes with the atmosphere correction of L cubes",
    "IN": "it is found beside its IF cube by itself",
}


@dataclass(frozen=True)
class Kind:
    """What an image holds."""

    holds: str
    """In words."""
    quantity: str
    """What its spectra are: I/F, radiance, Lambert albedo, reflectance; empty without spectra."""
    sensor: str = ""
    """L, S, J; empty for an image that is not CRISM's."""
    is_crism: bool = False
    """Whether its name is that of a CRISM product."""
    has_header: bool = False
    """Whether its ENVI header, not its label, describes it."""
    is_tile: bool = False
    """Whether it is a tile of the multispectral map."""
    rows_of: str = ""
    """`cube` or `record` when a table of detector rows behind the image gives its wavelengths."""
    purpose: str = ""
    """What it is for, when it is not a cube to ingest."""

    @property
    def has_spectra(self) -> bool:
        """Whether `ingest` takes it."""
        return self.quantity != ""


def kind_of(name: str) -> Kind:
    """The kind of a product, by its id or file name; a name that is not CRISM's may be any cube of reflectance."""
    targeted, calibration, tile = crism.parse_name(name), crism.parse_calibration(name), crism.parse_tile(name)
    if targeted is not None:
        return _targeted(targeted)
    if calibration is not None:
        holds = _CALIBRATION.get(calibration.kind, f"calibration of type {calibration.kind}")
        binned = crism.binned(calibration.binning)
        words = f"CRISM {calibration.kind} record: {holds}, sensor {calibration.sensor}, {binned}"
        purpose = _PURPOSE.get(calibration.kind, "gibbsite does not need it")
        rows_of = "record" if calibration.kind in ("VS", "AT") else ""
        return Kind(words, "", calibration.sensor, is_crism=True, rows_of=rows_of, purpose=purpose)
    if tile is not None:
        quantity = _HOLDS[tile.activity] if tile.activity in ("IF", "AL") else ""
        holds = _HOLDS.get(tile.activity, f"type {tile.activity}")
        words = f"CRISM MRDR tile {tile.tile}: {holds}, on a map of {tile.resolution} pixels per degree"
        purpose = "" if quantity else "gibbsite does not need it"
        return Kind(words, quantity, "", is_crism=True, is_tile=True, purpose=purpose)
    return Kind("image with a name of its own", "reflectance")


def _targeted(name: crism.ProductName) -> Kind:
    quantity = _HOLDS[name.activity] if name.activity in ("IF", "RA") and name.kind != "DDR" else ""
    product = f"CRISM {name.kind}{name.version} of {name.observation}_{name.counter}"
    holds = _HOLDS.get(name.activity, f"type {name.activity}")
    sensor = "both sensors" if name.sensor == "J" else f"sensor {name.sensor}"
    if quantity and name.kind in ("TER", "MTR"):
        holds += " with air and light corrected"
    purpose = _PURPOSE.get(name.kind, _PURPOSE.get(name.activity, "gibbsite makes maps from spectra (_IF)"))
    return Kind(
        holds=f"{product}: {holds}, {_SPACE[name.kind]}, {sensor}",
        quantity=quantity,
        sensor=name.sensor,
        is_crism=True,
        has_header=name.kind in ("TER", "MTR"),
        rows_of="cube" if name.kind == "TRR" else "",
        purpose="" if quantity else purpose,
    )
