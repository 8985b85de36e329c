"""
My loss is not in the list
==========================

A parcel that comes later than promised costs nine times as much as one that comes as much too early. The
squared loss does not know that. Two plain functions do, the value of the loss and its slope in the prediction
p; they are compiled when they are first used.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import CustomLoss, OnlineRegressor


def value(p, y):
    return 4.5 * (y - p) ** 2 if y > p else 0.5 * (y - p) ** 2


def slope(p, y):
    return 9.0 * (p - y) if y > p else p - y


promise = CustomLoss(value, slope)

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 5))
days = 8 + X @ [1.0, -0.5, 0.3, 0.0, 0.8] + rng.gumbel(0, 0.8, 20_000)
train, test = slice(0, 15_000), slice(15_000, None)

figure, ax = plt.subplots(layout="constrained")
for loss, name, color in (("squared", "squared loss", "C5"), (promise, "own loss", "C0")):
    model = OnlineRegressor(loss, random_state=0).fit(X[train], days[train])
    late = days[test] - model.predict(X[test])
    cost = np.where(late > 0, 4.5, 0.5) * late**2
    label = f"{name}: {np.mean(late > 0):.0%} are late, average cost {cost.mean():.2f}"
    ax.hist(late, bins=np.linspace(-4, 6, 101), color=color, alpha=0.6, label=label)
ax.axvline(0, color="k", lw=1)
top = ax.get_ylim()[1]
ax.text(0.08, top * 1.03, "late →", va="top")
ax.text(-0.08, top * 1.03, "← early", va="top", ha="right")
ax.set(xlabel="days after the promise", ylabel="held-out parcels", xlim=(-4, 6), ylim=(0, top * 1.4))
ax.set_title("What is promised when being late costs nine times as much")
ax.legend(loc="upper right")
plt.show()
