"""Code to compile: the loops over rows, and the step of each loss. ``steelyard.compiled`` is the door to it.

Arrays in, arrays out: nothing in here is allocated, nothing is raised. ``layout`` names the positions in those arrays,
``signatures`` says what each function takes, ``plan`` how a call is made, ``digest`` tells versions apart: these need
no Numba. All the rest is imported where something has to be compiled, by ``library``.
"""
