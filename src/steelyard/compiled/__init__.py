"""From Python to compiled code without Numba: objects that came with the package, or those in the user's cache folder.

Only what is in neither is compiled, by Numba (``steelyard.kernels``), and kept. ``door`` is what the rest of the
package calls; behind it ``objects`` finds and keeps object files, ``folder`` guards the cache, ``loader`` makes
functions of objects, ``call`` hands over arrays, ``machine`` knows the processor, ``everything`` compiles all there is.
"""
