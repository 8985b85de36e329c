"""How far a flow gets in a given time, from nothing but its speed: a safeguarded 1-d method.

The speed along the way, ``pull(context, d)`` at distance d from the start, is at least 0 and does not grow. Then the
way to d takes the time ∫ 1/pull, and a proximal step, the D with D = time * pull(D), never passes the flow (the
sandwich lemma). So the solver advances by proximal steps for the time that is left: it shrinks to zero from above,
quadratically at the end, and every integral stays on the side where there is a pull.
"""

from __future__ import annotations

import math
from typing import Any

from steelyard.kernels.compile import jit

# The 13-point Kronrod extension of Gauss-Lobatto rules (Gander & Gautschi, 2000), on [-1, 1]: nodes from the outside
# in, their weights, and the weights of the 7-point rule inside it.
_NODES = (1.0, 0.942882415695480, math.sqrt(2.0 / 3.0), 0.641853342345781, math.sqrt(0.2), 0.236383199662150)
_FINE = (
    0.0158271919734802,
    0.094273840218850,
    0.155071987336585,
    0.188821573960182,
    0.199773405226859,
    0.224926465333340,
)
_FINE_MIDDLE = 0.242611071901408
_COARSE = (77.0 / 1470.0, 0.0, 432.0 / 1470.0, 0.0, 625.0 / 1470.0, 0.0)
_COARSE_MIDDLE = 672.0 / 1470.0


def flow_solver(pull: Any) -> Any:
    """(flow_travel, proximal_travel) of (context, time) for a compiled ``pull(context, d)``."""

    @jit
    def proximal_from(context, start, time, precision):
        """The D >= 0 with D = time * pull(start + D), from below and to a relative precision, by bracketing.

        The unknown spans hundreds of decades, so a bracket is first found by ever larger factors, then narrowed by
        secants of (D - time*pull)/(D + time*pull), which is bounded and increasing, with bisections in between.
        """
        high = time * pull(context, start)
        if high == 0.0:
            return 0.0
        high = min(high, 1e300)
        f_high = 1.0
        low, f_low = high, 1.0
        factor = 0.5
        for _ in range(64):
            move = time * pull(context, start + low)
            f_low = (low - move) / (low + move)
            if f_low <= 0.0:
                break
            high, f_high = low, f_low
            low = max(low * factor, 1e-300)
            factor *= factor
        for i in range(200):
            if high - low <= precision * high or f_low == 0.0:
                break
            if high > 4.0 * low:
                d = math.sqrt(low) * math.sqrt(high)
            else:
                d = low - f_low * (high - low) / (f_high - f_low)
                margin = 1e-16 * high
                if i % 3 == 2 or not low + margin < d < high - margin:
                    d = 0.5 * (low + high)
            move = time * pull(context, start + d)
            f = (d - move) / (d + move)
            if f > 0.0:
                high, f_high = d, f
            else:
                low, f_low = d, f
        return low

    @jit
    def travel_time(context, start, distance, tolerance):
        """∫ 1/pull over a leg of the way, by panels that shrink at kinks and grow back.

        The rule has nodes at both ends of a panel: a kink just before the end would hide between other nodes.
        The tolerance is absolute. A relative one would chase the rounding noise of slopes near the minimum.
        """
        total = 0.0
        done = 0.0
        width = distance
        for count in range(2000):
            width = min(width, distance - done)
            half = 0.5 * width
            middle = done + half
            value = 1.0 / pull(context, start + middle)
            fine = _FINE_MIDDLE * value
            coarse = _COARSE_MIDDLE * value
            for j in range(6):
                shift = half * _NODES[j]
                value = 1.0 / pull(context, start + (middle - shift))
                value += 1.0 / pull(context, start + (middle + shift))
                fine += _FINE[j] * value
                coarse += _COARSE[j] * value
            panel = half * fine
            error = abs(half * coarse - panel)
            # written so that an infinite panel, beside a minimum, is accepted: the flow takes for ever to get there
            if not error > max(tolerance, 1e-14 * (total + panel)) or width <= 1e-12 * distance or count > 1000:
                total += panel
                done += width
                width *= 4.0
            else:
                width *= 0.5
            if done >= distance or done + width == done:
                break
        return total

    @jit
    def flow_travel(context, time):
        """How far the flow gets."""
        travel = 0.0
        left = time
        for _ in range(100):
            speed = pull(context, travel)
            if left * speed <= 1e-14 * travel:  # what is left moves nothing any more
                travel += left * speed
                break
            d = proximal_from(context, travel, left, 1e-3)  # a leg may be shorter
            if d <= 1e-17 * travel:
                break
            # Onwards the flow is no faster than at the end of this leg, d/left: what an error in time can move it by.
            left -= travel_time(context, travel, d, 1e-13 * (travel + d) * (left / d))
            travel += d
            if not left > 0.0:
                break
        return travel

    @jit
    def proximal_travel(context, time):
        """How far the proximal step gets."""
        return proximal_from(context, 0.0, time, 4e-16)

    return flow_travel, proximal_travel
