"""
How far am I from the best model?
=================================

While it learns, a model keeps a few sums that prove how far its progressive loss is at most above that of
*any* linear model of a given norm. Here they are compared with the truth, for which the best such model must
be found at each moment, by looking at all rows again.

Both are per round: the average loss of the mixture minus that of the best model of norm up to 3 in scaled
columns. The bound is never below the truth, and comes closer to it as rows go by.
"""

import matplotlib.pyplot as plt
import numpy as np

import steelyard

rng = np.random.default_rng(0)
n, columns, radius = 10_000, 10, 3.0
X = rng.normal(size=(n, columns))
u = rng.normal(size=columns)
u *= 2.0 / np.linalg.norm(u)
y = np.where(rng.random(n) < 1 / (1 + np.exp(-(X @ u))), 1.0, -1.0)

mixture = steelyard.Mixture("logistic")
rows, bound, regret, start = np.unique(np.geomspace(50, n, 12).astype(int)), [], [], 0
for stop in rows:
    mixture.learn(X[start:stop], y[start:stop])
    certificate = mixture.certify()
    bound.append(certificate.regret_bound(radius=radius, scaled=True) / stop)
    # The same ball for the comparator: models of norm up to 3 in the certificate's columns.
    scaled = (X[:stop] - certificate.center[:-1]) / certificate.scale[:-1]
    best = steelyard.hindsight(scaled, y[:stop], loss="logistic", radius=radius)
    regret.append((certificate.total_loss - best.total_loss) / stop)
    start = stop

figure, ax = plt.subplots(layout="constrained")
ax.plot(rows, bound, "o-", color="C4", label="certified while learning, in one pass")
ax.plot(rows, regret, "^-", color="C0", label="true, with the best model in hindsight")
ax.fill_between(rows, regret, bound, color="C4", alpha=0.12, lw=0)
ax.set(xscale="log", yscale="log", xlabel="rows learned", ylabel="regret per round (log loss)")
ax.set_title("The certificate and the true regret")
ax.legend()
plt.show()

# %%
# What a model says of itself, without a second look at the data:

print(mixture.certify().summary(radius=radius))
