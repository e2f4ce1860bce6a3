"""One module per sub-command: files in, files out. The thinking is done in the modules they call."""
