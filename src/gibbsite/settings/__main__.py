"""Prints the JSON schema of the settings."""

from gibbsite.settings import schema

print(schema(), end="")
