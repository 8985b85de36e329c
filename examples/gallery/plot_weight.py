"""
What does a weight do to one update?
====================================

One example, label 3, prediction 0, rate 1. Where does the prediction land when its weight is h? IWA lies on the dots,
which are plain gradient descent on the same example cut into 10,000 pieces. The linearized step overshoots.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import step


def in_pieces(h, pieces=10_000):
    p = 0.0
    for _ in range(pieces):
        p -= h / pieces * (p - 3.0)
    return p


weights = np.logspace(-2, 3, 100)
figure, ax = plt.subplots(layout="constrained")
for update, style in {"linearized": "-", "aprox": "--", "iwa": "-", "proximal": "-."}.items():
    ax.plot(weights, -weights * step(0.0, 3.0, weights, loss="squared", update=update), style, label=update)
ax.plot(weights[::10], [in_pieces(h) for h in weights[::10]], "k.", label="in 10,000 pieces")
ax.set(xscale="log", ylim=(0, 6), xlabel="weight h", ylabel="prediction after the step")
ax.legend()
plt.show()
