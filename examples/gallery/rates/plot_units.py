"""
Must I scale my columns?
========================

The columns of a standardised set are multiplied by random powers of ten, between 10⁻ᵏ and 10ᵏ: columns in all
kinds of units. Both models make one pass. What is the accuracy on rows that were held out?

The model without a learning rate hardly notices the units. Stochastic gradient descent does: how well it
works depends on the draw.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from steelyard import OnlineClassifier

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
spreads = np.arange(0, 7)
scores = {"OnlineClassifier": [], "SGDClassifier": []}
for spread in spreads:
    found = {name: [] for name in scores}
    for seed in range(6):
        units = 10.0 ** np.random.default_rng(seed).uniform(-spread, spread, X.shape[1])
        A, B, a, b = train_test_split(X * units, y, random_state=seed, stratify=y)
        found["OnlineClassifier"].append(OnlineClassifier(random_state=seed).fit(A, a).score(B, b))
        sgd = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=seed)
        found["SGDClassifier"].append(sgd.fit(A, a).score(B, b))
    for name in scores:
        scores[name].append(found[name])

# %%
# The line is the mean of six random draws, the band reaches from the worst of them to the best.

figure, ax = plt.subplots(layout="constrained")
for (name, values), color, marker in zip(scores.items(), ("#3f4a57", "C5"), "os", strict=True):
    values = np.array(values)
    ax.plot(spreads, values.mean(axis=1), color=color, marker=marker, label=name)
    ax.fill_between(spreads, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15, lw=0)
ax.axhline(max(y.mean(), 1 - y.mean()), color="k", lw=0.8, ls=":", label="always the larger class")
ax.set(ylim=(0.5, 1.01), xlabel="k: units of the columns from 10⁻ᵏ to 10ᵏ", ylabel="accuracy on held-out rows")
ax.set_title("Units of columns do not matter without a learning rate")
ax.legend(loc="lower left")
plt.show()
