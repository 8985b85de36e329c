"""
How much does the learning rate matter?
=======================================

Every update with rates from 10⁻³ to 10³, one pass each over the same rows, five shuffles. The average loss is
progressive: each row is predicted before it is learned. The dashed line is the default, ``eta0="auto"``,
which takes no rate.

All updates are alike where the rate is small. Where it is large, the loss of the linearized one leaves the
picture (arrows; the number says how far it goes), and those of the other three rise slowly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import steelyard

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X), 2.0 * y - 1.0
result = steelyard.sweep(X, y, loss="logistic", eta0=np.logspace(-3, 3, 13), repeats=5)

without_a_rate = []
for seed in range(5):
    order = np.random.default_rng(seed).permutation(len(y))
    mixture = steelyard.Mixture("logistic")
    mixture.learn(X[order], y[order])
    without_a_rate.append(mixture.progressive_loss_)

figure, ax = plt.subplots(layout="constrained")
result.plot(ax=ax)
ax.axhline(np.mean(without_a_rate), color="#3f4a57", ls="--", lw=2, label="mixture (no rate)")
ax.set_title("breast_cancer, 569 rows: one pass with each rate")
ax.legend(loc="upper center")
plt.show()

# %%
# The best rate of each update in hindsight, and its loss:

for update, (rate, loss) in result.best().items():
    print(f"{update:>10}: rate {rate:<8.3g} loss {loss:.4f}")
print(f"   no rate:               loss {np.mean(without_a_rate):.4f}")
