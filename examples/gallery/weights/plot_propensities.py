"""
The sample is biased, and I know how
====================================

Rows with a large x had less chance to be seen: the propensity falls from 1 to 0.01. Each row that was seen gets the weight one over its
propensity. The line that is learned with these weights is then near the best line for everybody. Without weights it is the line for
those that were seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from steelyard import OnlineRegressor

rng = np.random.default_rng(1)
x = rng.uniform(0, 4, 20_000)
y = 2.0 + 3.0 * np.sin(x) + rng.normal(0, 0.4, x.size)  # not a line: which line is best depends on who counts
propensity = np.exp(-x * np.log(100) / 4)
seen = rng.random(x.size) < propensity
X = x[:, None]

everybody = OnlineRegressor(random_state=0).fit(X, y)
unweighted = OnlineRegressor(random_state=0).fit(X[seen], y[seen])
weighted = OnlineRegressor(random_state=0).fit(X[seen], y[seen], sample_weight=1 / propensity[seen])

# %%
# A dot is a row that was seen, and its area is its weight: from 1 at the left to 100 at the right.

figure, ax = plt.subplots(layout="constrained")
some = np.flatnonzero(seen)[::8]
ax.scatter(
    x[some], y[some], s=2 / propensity[some], color="C5", alpha=0.35, lw=0, label="rows that were seen (one in 8)"
)
ends = np.array([[0.0], [4.0]])
for model, style, name in (
    (unweighted, "C1-", "learned from them, unweighted"),
    (weighted, "C0-", "learned from them, weights 1/propensity"),
    (everybody, "k--", "learned from everybody"),
):
    ax.plot(ends[:, 0], model.predict(ends), style, lw=2.2, label=name)
ax.set(xlabel="x", ylabel="y", ylim=(-3, 8.5), title="Inverse propensities give the line for everybody")
ax.legend(loc="upper right")
plt.show()
