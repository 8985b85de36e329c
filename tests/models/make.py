"""Write small model files of this version's format, ``format-N-*``, and what they predict, ``format-N.json``.

Once for every format, with the last version that writes it; ``tests/test_modelfile.py`` loads them for ever after.

    python tests/models/make.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import Bank, Learner, Mixture
from steelyard.modelfile import FORMAT

LEARNERS: dict[str, Any] = {
    "learner": lambda: Learner("logistic", schedule="adagrad-norm", certificate=True),
    "ball": lambda: Learner("squared", metric="scalar", radius=0.5),
    "bank": lambda: Bank("squared", updates=("iwa", "linearized"), eta0=[0.1, 1.0]),
    "full": lambda: Learner("logistic", metric="full", certificate=True),
    "mixture": lambda: Mixture("logistic"),
    "regression": lambda: Mixture("squared"),
    "classes": lambda: Mixture("logistic", n_outputs=3),
}


def main() -> None:
    folder = Path(__file__).parent
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) * [1.0, 2.0, 0.5] + [0.0, 5.0, 0.0]
    real = X @ [1.0, -2.0, 3.0] + 7.0
    labels = {"classes": np.arange(20.0) % 3, "regression": 100.0 * real, "bank": real, "ball": real}
    told = {}
    for name, make in LEARNERS.items():
        learner = make()
        learner.learn(X, labels.get(name, np.sign(X[:, 0])))
        learner.save(folder / f"format-{FORMAT}-{name}")
        told[name] = {"rows": X[:3].tolist(), "predict": learner.predict(X[:3]).tolist()}
        if learner.certificate and name != "classes":
            told[name]["fenchel"] = learner.certify().fenchel
    (folder / f"format-{FORMAT}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
