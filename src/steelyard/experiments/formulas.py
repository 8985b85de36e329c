"""The page's formulas as MathML, which browsers typeset by themselves: no script, no font, no network."""

from __future__ import annotations

_OPERATORS = "=+−÷·,()[]{}|⟨⟩‖∑∈→≤*"


def inline(*parts: str) -> str:
    """A formula within a sentence."""
    return f'<math displaystyle="true">{row(*parts)}</math>'


def display(*parts: str) -> str:
    """A formula on a line of its own, which scrolls where the window is narrower."""
    return f'<div class="formula"><math display="block">{row(*parts)}</math></div>'


def row(*parts: str) -> str:
    """Parts side by side: tags as they are; a word, a number or an operator gets its tag."""
    return f"<mrow>{''.join(map(_token, parts))}</mrow>"


def _token(part: str) -> str:
    if part.startswith("<"):
        return part
    if part in ("‖", "⟨", "⟩", "(", ")"):  # as high as a letter: they would grow to the highest part of the row
        return f'<mo stretchy="false">{part}</mo>'
    if all(c in _OPERATORS for c in part):
        return f"<mo>{part}</mo>"
    if part.replace(",", "").replace(".", "").isdigit():
        return f"<mn>{part}</mn>"
    return f"<mi>{part}</mi>"


def sub(base: str, index: str) -> str:
    """base with an index below."""
    return f"<msub>{_token(base)}{_token(index)}</msub>"


def sup(base: str, power: str) -> str:
    """base with a power."""
    return f"<msup>{_token(base)}{_token(power)}</msup>"


def subsup(base: str, index: str, power: str) -> str:
    """base with an index and a power."""
    return f"<msubsup>{_token(base)}{_token(index)}{_token(power)}</msubsup>"


def frac(above: str, below: str) -> str:
    """A fraction."""
    return f"<mfrac>{_token(above)}{_token(below)}</mfrac>"


def root(inner: str) -> str:
    """A square root."""
    return f"<msqrt>{_token(inner)}</msqrt>"


def total(below: str, above: str | None = None) -> str:
    """The sign of a sum with its limits."""
    if above is None:
        return f"<munder><mo>∑</mo>{_token(below)}</munder>"
    return f"<munderover><mo>∑</mo>{_token(below)}{_token(above)}</munderover>"


ETA0 = sub("η", "0")
LAM = sub("λ", "t")
AND = '<mo rspace="1.2em">,</mo>'
"""Between two formulas on a line."""
NEXT = row("t", "+", "1")
SQUARE = row("‖", sub("q", "t"), subsup("‖", "2", "2"))
SLOPE = row("ℓ", "<mo>′</mo>", "(", "p", ")")

AVERAGED = display(frac("1", "T"), total(row("t", "=", "1"), "T"), "ℓ", "(", sub("p", "t"), ",", sub("y", "t"), ")")
FTRL = display(
    *(sub("x", "t"), "=", frac(sub("θ", "t"), LAM), AND, sub("p", "t"), "=", "⟨", sub("q", "t"), ",", sub("x", "t")),
    *("⟩", AND, sub("θ", NEXT), "=", sub("θ", "t"), "−", "c", sub("q", "t"), AND, "a", "="),
    frac(SQUARE, LAM),
)
"""A round of FTRL with ψ_t = λ_t/2 ‖x‖²."""

LOSSES = {
    "squared": inline("ℓ", "(", "p", ",", "y", ")", "=", frac("1", "2"), "(", "p", "−", "y", sup(")", "2")),
    "logistic": inline(
        *("ℓ", "(", "p", ",", "y", ")", "=", "<mi>ln</mi>", "(", "1", "+"),
        *(sup("e", row("−", "y", "p")), ")"),
    ),
}

UPDATES = {
    "linearized": inline("c", "=", SLOPE),
    "aprox": inline(
        *("c", "=", "<mi>min</mi>", "{", "1", ",", frac(row("ℓ", "(", "p", ")"), row("a", sup(SLOPE, "2"))), "}", SLOPE)
    ),
    "iwa": ", ".join(
        (
            inline("c", "=", frac(row("p", "−", "v", "(", "a", ")"), "a")),
            "where " + inline(frac(row("d", "v"), row("d", "s")), "=", "−", "ℓ", "<mo>′</mo>", "(", "v", ")"),
            inline("v", "(", "0", ")", "=", "p"),
        )
    ),
    "proximal": inline("c", "=", "ℓ", "<mo>′</mo>", "(", "p", "−", "a", "c", ")"),
}

_GAMMA = sub("γ", "t")
GAMMA = inline(
    *(_GAMMA, "=", "ℓ", "(", "p", ")", "+", sup("ℓ", "*"), "(", "c", ")", "−", "c", "p", "+"),
    *(frac("1", "2"), "a", sup("c", "2")),
)
_GRADIENTS = row(total(row("i", "<mo>&lt;</mo>", "t")), "‖", sub("g", "i"), subsup("‖", "2", "2"))
SCHEDULES = {
    "gap": inline(
        *(sub("λ", "1"), "=", frac("1", ETA0), AND, sub("λ", NEXT), "=", LAM, "+"),
        frac(_GAMMA, subsup("η", "0", "2")),
    ),
    "adagrad-norm": inline(LAM, "=", frac("1", ETA0), root(row("1", "+", _GRADIENTS))),
    "power": inline(LAM, "=", frac(root("t"), ETA0)),
    "constant": inline(LAM, "=", frac("1", ETA0)),
}
REGRET = display(
    *(sub("<mi>Regret</mi>", "T"), "(", "u", ")", "≤", sub("λ", row("T", "+", "1"))),
    row("<mo>(</mo>", frac("1", "2"), "‖", "u", subsup("‖", "2", "2"), "+", subsup("η", "0", "2"), "<mo>)</mo>"),
    *("−", ETA0),
)
LINEARIZED_GAMMA = inline(_GAMMA, "=", frac(row("‖", sub("g", "t"), subsup("‖", "2", "2")), row("2", LAM)))
