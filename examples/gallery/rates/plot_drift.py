"""
The stream changes. Does the model follow?
==========================================

Clicks on 30 columns. At rows 10,000 and 20,000 what makes people click changes, all at once. Each model
predicts a row before it learns it; the picture shows the average log loss of the last 500 rows.

The two learners with a rate were given the best of 13 rates in hindsight, from 0.001 to 1000: one lets its
steps fall like 1/√t, the other does not. The mixture was given nothing, and is the first to recover.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import Learner, Mixture

rng = np.random.default_rng(0)
n, columns = 30_000, 30
X = rng.normal(size=(n, columns))
tastes = rng.normal(size=(3, columns)) * 3 / np.sqrt(columns)
margin = (X * tastes[np.arange(n) * 3 // n]).sum(axis=1)
y = np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), 1.0, -1.0)


def best_in_hindsight(schedule):
    """The losses of the best rate, and that rate."""
    found = []
    for rate in np.logspace(-3, 3, 13):
        found.append((Learner("logistic", schedule=schedule, eta0=rate).learn(X, y).loss, rate))
    return min(found, key=lambda pair: pair[0].sum())


falling, first_rate = best_in_hindsight("power")
constant, second_rate = best_in_hindsight("constant")
losses = {
    "mixture (no rate)": Mixture("logistic").learn(X, y).loss,
    f"IWA, rate {first_rate:.2g}/√t": falling,
    f"IWA, rate {second_rate:.2g}, constant": constant,
    "whoever knows the truth": np.logaddexp(0, -y * margin),
}
window = 500
figure, ax = plt.subplots(layout="constrained")
styles = ({"color": "#3f4a57"}, {"color": "C0"}, {"color": "C0", "ls": "--"}, {"color": "0.6", "ls": ":"})
for (name, loss), style in zip(losses.items(), styles, strict=True):
    rolling = np.convolve(loss, np.ones(window) / window, mode="valid")
    ax.plot(np.arange(window, n + 1), rolling, lw=1.5, **style, label=f"{name}: {loss.mean():.3f} on average")
ax.set(xlim=(0, n), xlabel="rows", ylabel="log loss of the last 500 rows", ylim=(0.2, 1.2))
ax.set_title("Two sudden changes, at rows 10,000 and 20,000")
ax.legend()
plt.show()
