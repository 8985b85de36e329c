"""
What does a weight do to one update?
====================================

One example with label 3 meets a model that predicts 0, at rate 1. Where does the prediction land when the
example has weight h?

The dots are plain gradient descent on the same example, cut into 10,000 pieces of weight h/10,000: what "seen
h times" means. IWA lies on them. The linearized step (that of SGD) passes the label from h = 1 on. aProx
stops half way, whatever the weight. The proximal step comes near the label more slowly.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import step


def in_pieces(h, pieces=10_000):
    p = 0.0
    for _ in range(pieces):
        p -= h / pieces * (p - 3.0)
    return p


weights = np.logspace(-2, 3, 200)
figure, ax = plt.subplots(layout="constrained")
names = {"iwa": "IWA", "linearized": "linearized (SGD)", "aprox": "aProx", "proximal": "proximal"}
for update, name in names.items():
    ax.plot(weights, -weights * step(0.0, 3.0, weights, loss="squared", update=update), lw=2, label=name)
ax.plot(weights[::12], [in_pieces(h) for h in weights[::12]], "k.", ms=7, label="seen h times")
ax.axhline(3.0, color="k", lw=0.8, ls=":")
ax.text(0.01, 3.06, "the label")
ax.set(xscale="log", ylim=(0, 6), xlabel="weight h", ylabel="prediction after the step")
ax.set_title("IWA ends where h small repetitions end; the linearized step overshoots")
ax.legend()
plt.show()

# %%
# Weights to add up
# -----------------
# A step of weight 2 and then one of weight 3 end where one of weight 5 ends. For the squared loss, which
# is the one here, only IWA of the four updates has this property. IWA has it for every loss; for some, the hinge
# loss among them, aProx and the proximal update make the same step as IWA, and have it, too.

for update, name in names.items():
    p = 0.0
    for h in (2.0, 3.0):
        p -= h * step(p, 3.0, h, loss="squared", update=update)
    at_once = -5.0 * step(0.0, 3.0, 5.0, loss="squared", update=update)
    print(f"{name:>16}: 2 and then 3: {p:8.4f}    5 at once: {at_once:8.4f}")
