"""
How large must the table be for hashed text?
============================================

Is a sentence from the documentation of NumPy or of SciPy's statistics? Words are hashed into 2ᵇ columns, so
that no vocabulary must be kept. With few bits, different words share a column.

The sentences are docstrings of the packages that are installed, so the numbers change a little with their
versions.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from sklearn.feature_extraction.text import HashingVectorizer

from steelyard import OnlineClassifier


def sentences(module):
    """The sentences of a module's docstrings, each once, without code and without the names that would give it away."""
    texts = {inspect.getdoc(getattr(module, name)) or "" for name in dir(module) if not name.startswith("_")}
    found = {
        re.sub(r"[^a-z ]|numpy|scipy|stats|\bnp\b", " ", sentence.lower())
        for text in texts
        for sentence in re.split(r"\.\s|\n\s*\n", text)
        if ">>>" not in sentence
    }
    return sorted(sentence for sentence in found if len(sentence.split()) >= 5)


classes = [sentences(np), sentences(scipy.stats)]
text = np.array(classes[0] + classes[1])
y = np.repeat(["numpy", "stats"], [len(found) for found in classes])
order = np.random.default_rng(0).permutation(y.size)
text, y = text[order], y[order]
train, test = slice(0, y.size * 3 // 4), slice(y.size * 3 // 4, None)

bits, seen, held_out = np.arange(4, 21, 2), [], []
for b in bits:
    X = HashingVectorizer(n_features=2**b, alternate_sign=False).transform(text)
    model = OnlineClassifier(random_state=0).fit(X[train], y[train])
    held_out.append(1 - model.score(X[test], y[test]))

figure, ax = plt.subplots(layout="constrained")
ax.plot(bits, held_out, "o-", color="C0", label="error on held-out sentences, one pass")
ax.axhline(min(np.mean(y == "numpy"), np.mean(y == "stats")), color="k", lw=0.8, ls=":")
ax.text(20, min(np.mean(y == "numpy"), np.mean(y == "stats")) - 0.005, "always the larger class", ha="right", va="top")
ax.set(xlabel="bits b: a table of 2ᵇ columns", ylabel="share of wrong answers", ylim=(0, 0.5))
ax.set_title(f"NumPy or SciPy's statistics? {y.size:,} sentences")
ax.legend(loc="lower left")
plt.show()

# %%
# The words that speak most for either side, by the size of their coefficients. A hash has no way back, so
# each word of the text is asked for its column:

words = sorted({word for sentence in text for word in sentence.split() if len(word) > 3})
hashed = HashingVectorizer(n_features=2**20, alternate_sign=False, norm=None).transform(words)
speaks = hashed @ model.coef_.ravel()
print("numpy:", ", ".join(words[k] for k in np.argsort(speaks)[:8]))
print("stats:", ", ".join(words[k] for k in np.argsort(-speaks)[:8]))
