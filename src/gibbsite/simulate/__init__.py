"""Simulated CRISM observations in the archive's own file formats, with the truth beside them.

minerals      absorption bands of the minerals, each with its source
fields        random numbers and coherent noise keyed by position
detector      wavelengths, rows and columns of the two detectors
geometry      detector pixel <-> ground <-> map, and the backplanes of the DDR
terrain       geological units, abundances, the planted classes
instrument    from the ground to I/F: shading, atmosphere, aerosols, stripes, noise, spikes, garbage
volcano       transmission of the air, as a volcano scan gives it
training      label polygons as a geologist would draw them
labelling     PDS3 labels and ENVI headers
formats       image, raster and polygon files, written block of lines by block of lines
observation   everything together
"""
