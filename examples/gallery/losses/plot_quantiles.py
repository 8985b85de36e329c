"""
How do I predict a range instead of a number?
=============================================

The quantile loss with τ = 0.9 is least where nine labels of ten lie below the prediction. Two models, for
0.05 and 0.95, make a band that should hold nine rows of ten, and a third gives the median. Here the noise
grows with x, and the band grows with it.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import OnlineRegressor
from steelyard.losses import Quantile

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, 20_000)
y = 3 * np.sin(x) + x + rng.normal(0, 0.3 + 0.35 * x)
X = np.column_stack([x, np.sin(x), np.cos(x)])
train, test = slice(0, 15_000), slice(15_000, None)
models = {tau: OnlineRegressor(Quantile(tau), random_state=0).fit(X[train], y[train]) for tau in (0.05, 0.5, 0.95)}

line = np.linspace(0, 10, 300)
grid = np.column_stack([line, np.sin(line), np.cos(line)])
figure, ax = plt.subplots(layout="constrained")
ax.plot(x[test][:1500], y[test][:1500], ".", color="C5", ms=3, alpha=0.6, label="held-out rows")
ax.fill_between(line, models[0.05].predict(grid), models[0.95].predict(grid), color="C0", alpha=0.2, lw=0)
for tau, style in ((0.95, "C0-"), (0.5, "C1-"), (0.05, "C3-")):
    ax.plot(line, models[tau].predict(grid), style, lw=2, label=f"τ = {tau}")
ax.set(xlabel="x", ylabel="y", title="A band for nine rows of ten, and the median")
ax.legend(loc="upper left")
plt.show()

# %%
# The share of the held-out rows below each prediction should be τ:

for tau, model in models.items():
    print(f"τ = {tau:<4}: {np.mean(y[test] < model.predict(X[test])):.3f} of the rows are below")
