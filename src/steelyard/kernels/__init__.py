"""Compiled code: the loops over rows, the step of each loss, and the one door to both (``library``).

Arrays in, arrays out: nothing in here is allocated, nothing is raised. ``layout`` names the positions in those arrays
and needs no Numba; everything else is imported on first use.
"""
