"""The one error family: what was found, what was expected, what to do. The command line prints it in one line."""


class GibbsiteError(Exception):
    """Something the user can mend."""


class InputError(GibbsiteError):
    """A file is missing, broken, or not what it should be."""


class SettingsError(GibbsiteError):
    """A setting is unknown, of the wrong type, or impossible."""


class OutputError(GibbsiteError):
    """A result could not be written."""
