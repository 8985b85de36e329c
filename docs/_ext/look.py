"""One look for all pictures of the gallery: Sphinx-Gallery calls ``reset`` before each example."""

from pathlib import Path


def reset(gallery_conf, fname):
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcdefaults()
    mpl.style.use(Path(__file__).with_name("steelyard.mplstyle"))
