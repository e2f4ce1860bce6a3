"""Corrections of spectra, one file each: arrays in, arrays out.

They work on strips (line, band, sample) of float32, in which a pixel that is not used is NaN throughout, and are
applied in this order (`gibbsite.cleaned`), each on or off by the settings:

    gaps bridged          kernels.bridge_gaps
    slant sunlight        light        divided by cos(incidence)
    atmosphere            air          divided by the transmission of a volcano scan, scaled to the pixel's own air,
                                       and what that leaves patched by the scan's artefact
    spikes                kernels.despike   along the spectrum, then down the columns
    stripes               stripes      divided by the gain of the detector column
    ratio                 bland        divided by the blandest pixels of the detector column
    smile                 smile        every column resampled onto the scene's wavelengths
    noise                 smooth       local polynomials along the spectrum
"""
