"""
Which learning rate does the mixture use?
=========================================

All of them, each by its share, and the shares follow the data. For 10,000 rows what makes a label positive
stands still: small rates and the experts with a full matrix have the mixture. Then it turns, so that old rows
mislead, and the largest of the rates that fall like 1/√n takes over at once. From row 20,000 on it stands
still again, and after some thousand rows the mixture has moved to a rate that falls faster.

:func:`steelyard.plot_bank` draws the shares from what ``bank_`` of an estimator, or
:meth:`steelyard.Mixture.bank`, says along the way.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import OnlineClassifier, plot_bank

rng = np.random.default_rng(0)
n, block = 40_000, 250
X = rng.normal(size=(n, 2))
angle = np.clip(np.arange(n) - 10_000, 0, 10_000) * (12 * np.pi / 10_000)
margin = 3 * np.cos(angle) * X[:, 0] + 3 * np.sin(angle) * X[:, 1]
y = rng.random(n) < 1 / (1 + np.exp(-margin))

model, banks, rows = OnlineClassifier(), [], np.arange(block, n + 1, block)
for stop in rows:
    part = slice(stop - block, stop)
    model.partial_fit(X[part], y[part], classes=[False, True])
    banks.append(model.bank_)

ax = plot_bank(banks, rows, title="Still, then turning (between the lines), then still")
for change in (10_000, 20_000):
    ax.axvline(change, color="k", lw=1, ls="--")
plt.show()

# %%
# The experts at the end, the largest shares first. The loss is the average since the first row.

for expert in sorted(model.bank_, key=lambda expert: -expert.weight)[:4]:
    print(f"rate {expert.eta0:8.3g}  {expert.decay:<12}  loss {expert.loss:7.4f}  share {expert.weight:.3f}")
