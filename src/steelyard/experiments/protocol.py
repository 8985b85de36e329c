"""The page's account of the method: the rounds, the four updates, λ_t and why this one, every symbol."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from steelyard.experiments import formulas as f
from steelyard.experiments.curves import NAMES
from steelyard.experiments.sets import NORMALISATION

if TYPE_CHECKING:
    from steelyard.experiments.report import Run

_WHY = {
    "gap": "derived from the bound on the regret: λ grows by what the round adds to the bound",
    "adagrad-norm": "the best-known choice: λ grows with the gradients, the same way for every update",
    "power": "it depends on nothing but the round",
    "constant": "the setting of the paper's Theorem 3.2, which needs a λ that stays",
}


def reading(run: Run) -> str:
    """What λ_t is, why, and the alternative that is shown."""
    mine, other = run.settings.schedule, run.alternative()
    said = [
        f"<p>The paper sets {f.inline(f.LAM)} as in Corollary 4.3 of Chen &amp; Orabona (ICML 2023), and does not "
        f"print it. The text of that corollary was not at hand, so every {f.inline(f.LAM)} here is a reading. This "
        f"page's is <b>{mine}</b>: {f.SCHEDULES[mine]}, {_WHY[mine]}.</p>"
    ]
    if mine == "gap":
        said.append(
            f"<p>There, {f.GAMMA} is what the round adds to the bound on the regret when the update's slope is c, and "
            f"{f.inline('ℓ*')} is the conjugate of the loss. Why this one: the paper's Theorem 2.2 then gives, for "
            f"every comparator u and for each of the four updates,</p>{f.REGRET}<p>so one number, which the learner "
            "knows, bounds the regret, a better update makes λ grow less, and η₀ is all that is left to choose, as in "
            f"the paper's figures. For the linearized update {f.LINEARIZED_GAMMA}, and λ grows nearly as under "
            "adagrad-norm.</p>"
        )
    if other:
        name = next(iter(other.values())).schedule
        said.append(
            f"<p>The alternative in figure 4 is <b>{name}</b>: {f.SCHEDULES[name]}, {_WHY[name]}. Table 4 has the "
            "verdicts under all four schedules, and <code>--schedule</code> runs another one in full.</p>"
        )
    return "".join(said)


def protocol(run: Run) -> str:
    """The method and its symbols."""
    rows = "".join(f"<tr><td>{NAMES[u]}</td><td>{f.UPDATES[u]}</td></tr>" for u in run.settings.updates)
    symbols = "".join(f"<tr><td>{f.inline(*symbol)}</td><td>{meaning}</td></tr>" for symbol, meaning in _symbols())
    return (
        "<p>Shown is the averaged loss: every example is predicted before it is learned, and the mean of the losses of "
        f"one pass is taken,</p>{f.AVERAGED}<p>and then the mean of {run.settings.repeats} shuffles. The learner is "
        "FTRL, from θ = 0, with the regularizer "
        f"{f.inline(f.sub('ψ', 't'), '(', 'x', ')', '=', f.frac(f.LAM, '2'), '‖', 'x', f.subsup('‖', '2', '2'))}:</p>"
        f"{f.FTRL}<p>Losses: squared, {f.LOSSES['squared']}; logistic, {f.LOSSES['logistic']}. The four updates differ "
        "in the slope c alone (p, y and a are those of the round):</p>"
        f'<div class="scroll" tabindex="0"><table id="updates"><thead><tr><th>update</th><th>slope</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        "<p><b>Normalisation.</b> The paper says <q>We normalize the datasets and added a constant bias term to the "
        f"features.</q> Here: {html.escape(NORMALISATION)}</p>"
        '<div class="scroll" tabindex="0"><table id="symbols"><thead><tr><th>symbol</th><th>meaning</th></tr></thead>'
        f"<tbody>{symbols}</tbody></table></div>"
    )


def _symbols() -> list[tuple[tuple[str, ...], str]]:
    s = f.sub
    return [
        (("t", ",", "T"), "the round, one example each; the number of rounds, which is the number of rows"),
        ((s("q", "t"), ",", s("y", "t")), "features of the example, the constant 1 among them; its label"),
        (("h",), "importance weight of an example, in figures 5 and 6; 1 elsewhere. It multiplies a"),
        (
            (s("x", "t"), ",", s("θ", "t")),
            "the linear model that predicts in round t; the dual vector that it is made of",
        ),
        ((s("p", "t"),), "the prediction, before the example is learned"),
        (("ℓ", ",", "ℓ", "<mo>′</mo>", ",", f.sup("ℓ", "*")), "the loss, its slope in p, its convex conjugate"),
        ((s("g", "t"),), "the gradient of the round's loss in x, which is the slope times q"),
        (("c",), "the slope that the update uses; the paper's z is c q"),
        (("a",), "step length: after the step, with the same λ, the prediction on the example is p − a c"),
        (
            ("v", "(", "s", ")"),
            "the prediction after it has followed the gradient flow of the loss for a time s, from p",
        ),
        ((s("ψ", "t"), ",", f.LAM), "the regularizer, and how strong it is: 1/λ is the learning rate of the round"),
        ((f.ETA0,), "initial learning rate, the one hyperparameter: 1/λ in the first round"),
        ((f.sub("γ", "t"),), "what a round adds to the bound on the regret"),
        (("u",), "the comparator: any one fixed linear model, chosen in hindsight"),
        ((f.sub("<mi>Regret</mi>", "T"), "(", "u", ")"), "the learner's summed loss less that of the comparator"),
        (("i",), "in a sum: the rounds before round t"),
        (
            ("⟨", "q", ",", "x", "⟩", ",", "‖", "q", "‖", ",", "‖", "q", s("‖", "2")),
            "the inner product of two vectors; the Euclidean norm, in text and in formulas",
        ),
    ]
