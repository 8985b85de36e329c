"""Write small model files of this version's format, ``format-N-*``, and what they predict, ``format-N.json``.

Once for every format, with the last version that writes it; ``tests/test_modelfile.py`` loads them for ever after. What
is there stays: a name that is new in LEARNERS is added.

    python tests/models/make.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from steelyard import Bank, Learner, Mixture, OnlineClassifier
from steelyard.modelfile import FORMAT

LEARNERS: dict[str, Any] = {
    "learner": lambda: Learner("logistic", schedule="adagrad-norm", certificate=True),
    "ball": lambda: Learner("squared", metric="scalar", radius=0.5),
    "bank": lambda: Bank("squared", updates=("iwa", "linearized"), eta0=[0.1, 1.0]),
    "full": lambda: Learner("logistic", metric="full", certificate=True),
    "mixture": lambda: Mixture("logistic"),
    "regression": lambda: Mixture("squared"),
    "classes": lambda: Mixture("logistic", n_outputs=3),
    "sparse": lambda: Mixture("hinge"),
    "l1": lambda: Learner("logistic", center="origin", schedule="adagrad-norm", l1=0.01, certificate=True),
    "l2": lambda: Learner("logistic", l1=0.001, l2=0.1),
    "l2-scalar": lambda: Learner("logistic", metric="scalar", l1=0.001, l2=0.1, certificate=True),
    "average": lambda: Learner("logistic", average=True),
}


def main() -> None:
    folder = Path(__file__).parent
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) * [1.0, 2.0, 0.5] + [0.0, 5.0, 0.0]
    real = X @ [1.0, -2.0, 3.0] + 7.0
    labels = {"classes": np.arange(20.0) % 3, "regression": 100.0 * real, "bank": real, "ball": real}
    told_in = folder / f"format-{FORMAT}.json"
    told = json.loads(told_in.read_text()) if told_in.exists() else {}
    for name in LEARNERS.keys() - told.keys():
        learner, rows = LEARNERS[name](), X
        if name == "sparse":
            rows = np.zeros((20, 300))
            rows[:, [3, 50, 299]] = X
        learner.learn(sp.csr_matrix(rows) if name == "sparse" else rows, labels.get(name, np.sign(X[:, 0])))
        learner.save(folder / f"format-{FORMAT}-{name}")
        told[name] = {"rows": rows[:3].tolist(), "predict": learner.predict(rows[:3]).tolist()}
        if learner.certificate and name != "classes":
            told[name]["fenchel"] = learner.certify().fenchel
    if "estimator" not in told:
        frame = pd.DataFrame(X, columns=["age", "height", "weight"])
        model = OnlineClassifier(random_state=0, passes=2).fit(frame, np.where(X[:, 0] > 0.0, "yes", "no"))
        model.save(folder / f"format-{FORMAT}-estimator")
        told["estimator"] = {"rows": X[:3].tolist(), "predict": model.decision_function(frame[:3]).tolist()}
    lines = [f"{json.dumps(name)}: {json.dumps(told[name])}" for name in (*LEARNERS, "estimator")]
    told_in.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
