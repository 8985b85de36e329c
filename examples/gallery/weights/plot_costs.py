"""
What if one mistake costs more than the other?
==============================================

One row in twenty is positive (a fraud, say), and to miss it costs more than a false alarm. The cost of a mistake on a row is the weight of
that row. The higher the cost of a miss, the fewer positives are missed and the more false alarms there are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from steelyard import OnlineClassifier

X, y = make_classification(20_000, 20, n_informative=5, weights=[0.95], class_sep=0.7, flip_y=0.02, random_state=0)
train, test = slice(0, 10_000), slice(10_000, None)
costs = np.array([1, 2, 5, 10, 20, 50, 100])
missed, alarms, price, price_unweighted = [], [], [], []
plain = OnlineClassifier(random_state=0).fit(X[train], y[train]).predict(X[test])
for cost in costs:
    weights = np.where(y == 1, cost, 1.0)
    model = OnlineClassifier(random_state=0).fit(X[train], y[train], sample_weight=weights[train])
    predicted = model.predict(X[test])
    missed.append(np.mean(predicted[y[test] == 1] == 0))
    alarms.append(np.mean(predicted[y[test] == 0] == 1))
    price.append(np.mean(weights[test] * (predicted != y[test])))
    price_unweighted.append(np.mean(weights[test] * (plain != y[test])))

# %%
# On the right, the average cost of a row that was held out: the model that was told the costs against the one that was not.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.2), layout="constrained")
left.plot(costs, missed, "o-", color="C1", label="positives that are missed")
left.plot(costs, alarms, "s-", color="C0", label="negatives with an alarm")
left.set(xscale="log", ylim=(0, 1), xlabel="cost of a miss, in false alarms", ylabel="share of the held-out rows")
left.set_title("Which mistakes are made")
left.legend()
right.plot(costs, price_unweighted, "^--", color="C5", label="weight 1 for all")
right.plot(costs, price, "o-", color="C0", label="weight = cost")
right.set(
    xscale="log", ylim=(0, None), xlabel="cost of a miss, in false alarms", ylabel="average cost of a held-out row"
)
right.set_title("What they cost")
right.legend()
plt.show()
