"""A slow, independent oracle for scalar online-learning updates.

Definitions only: no closed forms of gradient flows, proximal points or conjugates.
Everything is computed in mpmath; results carry 60 significant digits, and inputs
are Python floats (or mpf) taken exactly.

    value(loss, p, y, **params)            l(p, y)
    slope(loss, p, y, **params)            l'(p, y), the derivative in p
    conjugate(loss, s, y, **params)        sup_p s p - l(p, y)
    step(loss, update, p, y, a, **params)  surrogate slope c of the update p -> p - a c
"""

import itertools
from types import SimpleNamespace

from mpmath import mp, mpf

DPS = 60  # digits of the results
WORK = 120  # digits of the working arithmetic: leaves room for cancellation
QUAD = 40  # digits asked of the quadrature nodes and sums
NEAR = mpf("1e-40")  # relative distance at which a minimizer counts as reached

LOSSES = (
    "squared",
    "logistic",
    "exponential",
    "hinge",
    "squared_hinge",
    "absolute",
    "quantile",
    "huber",
    "poisson",
    "logarithmic",
    "hellinger",
)
UPDATES = ("linearized", "aprox", "iwa", "proximal")
MARGIN = ("logistic", "exponential", "hinge", "squared_hinge")


def _define(loss, y, tau=0.5, delta=1.0, eps=1e-6):
    """The loss as f(w) with w = shift + sign * p, sign = +-1, and its plain facts in p.

    Facts: kinks (where the derivative is not smooth), argmin (the closed interval of
    minimizers, ends may be infinite), ends (the derivative at -inf and +inf), floor
    (the infimum) and soft (whether the derivative vanishes continuously at the
    minimizer, so that the flow never gets there).
    """
    y, tau, delta, eps = mpf(y), mpf(tau), mpf(delta), mpf(eps)
    shift, sign, floor, soft, kinks = mpf(0), 1, mpf(0), False, []
    if loss in MARGIN:
        if abs(y) != 1:
            raise ValueError("label must be -1 or 1")
        sign = int(y)
        argmin = (mpf(1), mp.inf)
        ends = (-mp.inf, mpf(0))
    elif loss in ("logarithmic", "hellinger"):
        if not y > 0:
            shift, sign = mpf(1), -1
        argmin = (mpf(1), mp.inf)
        kinks = [eps, mpf(1)]
    else:
        argmin = (mpf(0), mpf(0))
        ends = (-mp.inf, mp.inf)
        shift = -y

    if loss == "squared":
        soft = True
        f, df = (lambda r: r * r / 2), (lambda r: r)
    elif loss == "logistic":
        argmin, ends = (mp.inf, mp.inf), (mpf(-1), mpf(0))
        f, df = (lambda m: mp.log1p(mp.exp(-m))), (lambda m: -1 / (1 + mp.exp(m)))
    elif loss == "exponential":
        argmin = (mp.inf, mp.inf)
        f, df = (lambda m: mp.exp(-m)), (lambda m: -mp.exp(-m))
    elif loss == "hinge":
        kinks, ends = [mpf(1)], (mpf(-1), mpf(0))
        f, df = (lambda m: max(mpf(0), 1 - m)), (lambda m: mpf(-1 if m < 1 else 0))
    elif loss == "squared_hinge":
        kinks, soft = [mpf(1)], True
        f, df = (lambda m: max(mpf(0), 1 - m) ** 2 / 2), (lambda m: -max(mpf(0), 1 - m))
    elif loss == "absolute":
        kinks, ends = [mpf(0)], (mpf(-1), mpf(1))
        f, df = abs, mp.sign
    elif loss == "quantile":
        kinks, ends = [mpf(0)], (-tau, 1 - tau)
        f = lambda r: -tau * r if r < 0 else (1 - tau) * r
        df = lambda r: -tau if r < 0 else 1 - tau if r > 0 else mpf(0)
    elif loss == "huber":
        kinks, ends, soft = [-delta, delta], (-delta, delta), True
        f = lambda r: r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)
        df = lambda r: max(-delta, min(delta, r))
    elif loss == "poisson":
        if y < 0:
            raise ValueError("label must be nonnegative")
        shift, soft, ends = mpf(0), y > 0, (-y, mp.inf)
        floor = y - y * mp.log(y) if y > 0 else mpf(0)
        argmin = (mp.log(y),) * 2 if y > 0 else (-mp.inf, -mp.inf)
        f, df = (lambda p: mp.exp(p) - y * p), (lambda p: mp.exp(p) - y)
    elif loss == "logarithmic":
        ends = (-1 / eps, mpf(0))
        f = lambda w: mpf(0) if w >= 1 else -mp.log(w) if w >= eps else -mp.log(eps) + (eps - w) / eps
        df = lambda w: mpf(0) if w >= 1 else -1 / max(w, eps)
    elif loss == "hellinger":
        root = mp.sqrt(eps)
        ends = (-1 / root, mpf(0))
        f = lambda w: mpf(0) if w >= 1 else 2 - 2 * mp.sqrt(w) if w >= eps else 2 - 2 * root + (eps - w) / root
        df = lambda w: mpf(0) if w >= 1 else -1 / mp.sqrt(max(w, eps))
    else:
        raise ValueError(f"unknown loss {loss!r}")

    def argument(p):
        return mp.fadd(shift, sign * p, exact=True)  # exact, so that 1 - 1e-300 stays below 1

    if sign < 0:
        ends = (-ends[1], -ends[0])
    return SimpleNamespace(
        value=lambda p: f(argument(p)),
        slope=lambda p: sign * df(argument(p)),
        kinks=sorted(sign * (k - shift) for k in kinks),
        argmin=sorted(sign * (w - shift) for w in argmin),
        ends=ends,
        floor=floor,
        soft=soft,
    )


def _descent(l, p):
    """Direction of descent from p, distance to the nearest minimizer, and the speed |l'| after a travel t.

    By convexity the speed never increases along the way. At the minimizer it is the limit from the near side.
    """
    down = l.slope(p) > 0
    way = -1 if down else 1
    goal = l.argmin[1] if down else l.argmin[0]
    room = way * (goal - p)
    last = room * (1 - mpf("1e-60")) if mp.isfinite(room) else room
    return way, room, lambda t: abs(l.slope(p + way * min(t, last)))


def _proximal_travel(speed, room, a, tol):
    """Bracket, to relative width tol, the root t in (0, room] of t = a speed(t); room itself if a jump hides it."""
    hi = min(room, a * speed(mpf(0)))
    if hi == room and room * (1 - mpf("1e-50")) <= a * speed(room * (1 - mpf("1e-50"))):
        return room, room
    factor = mpf(1) / 2
    lo = hi * factor
    while lo > a * speed(lo):
        hi, factor = lo, factor**2
        lo = hi * factor
    while hi - lo > tol * hi:
        mid = mp.sqrt(lo * hi) if hi > 2 * lo else (lo + hi) / 2
        if mid > a * speed(mid):
            hi = mid
        else:
            lo = mid
    return lo, hi


def _flow_travel(l, p, a):
    """Travel t of the gradient flow from p in time a: the root of integral_0^t du / speed(u) = a.

    Coordinate x: the travel itself, or -log(1 - travel / room), minus the log distance left, when the
    minimizer is soft. Times are in units of a. As t >= a speed(t), a relative error of t is at most the
    absolute error of such a time.
    """
    way, room, speed = _descent(l, p)
    if l.soft:
        travel = lambda x: -room * mp.expm1(-x)
        coordinate = lambda t: -mp.log1p(-t / room)
        rate = lambda x: room * mp.exp(-x) / (a * speed(travel(x)))
        end = -mp.log(NEAR)
    else:
        travel = coordinate = lambda t: t
        rate = lambda x: 1 / (a * speed(x))
        end = room
    cuts = [way * (k - p) for k in l.kinks]
    cuts = sorted(coordinate(t) for t in cuts if 0 < t < room)

    def smooth(x0, x1):
        """Time from x0 to x1 with no kink in between, by quadrature on panels halved until accurate."""
        bound = (travel(x1) - travel(x0)) / (a * speed(travel(x1)))  # the speed is lowest at x1
        if bound < mpf("1e-34"):
            return bound
        scale = max(bound, mpf(1))
        mid, half = (x0 + x1) / 2, (x1 - x0) / 2

        def f(node):
            with mp.workdps(WORK):
                return half * rate(mid + half * node) / scale

        if mpf("1e-3") < rate(x0) / rate(x1) < 1000:
            with mp.workdps(QUAD):
                total, error = mp.quad(f, [-1, 1], method="gauss-legendre", maxdegree=4, error=True)
            if error < mpf("1e-30"):
                return total * scale
        return smooth(x0, mid) + smooth(mid, x1)

    def time(x0, x1):
        """Signed time from x0 to x1."""
        if x0 > x1:
            return -time(x1, x0)
        stops = [x0] + [c for c in cuts if x0 < c < x1] + [x1]
        return mp.fsum(smooth(u, v) for u, v in itertools.pairwise(stops) if v > u)

    # The flow is no faster than its start and no slower than its end, hence it travels at least
    # as far as the proximal step and at most twice as far.
    near, far = _proximal_travel(speed, room, a, mpf("1e-3"))
    if near >= room * (1 - NEAR):
        return room
    lo = coordinate(near)
    hi = min(end, coordinate(2 * far)) if 2 * far < room else end
    x, base, done = lo, mpf(0), mpf(0)  # done: the accurately known time from 0 to base
    for _ in range(500):
        t = done + time(base, x)
        if x == end and t <= 1:
            return room
        if t < 4:
            base, done = x, t
        if abs(t - 1) < mpf("1e-26"):
            return travel(x + (1 - t) / rate(x))
        lo, hi = (x, hi) if t < 1 else (lo, x)
        x -= t * mp.log(t) / rate(x)  # Newton for log(time) = 0
        if x >= hi and hi == end and t < 1:
            x = end
        elif not lo < x < hi:
            x = (lo + hi) / 2
    raise ArithmeticError("no convergence")


def value(loss, p, y, **params):
    """l(p, y)."""
    with mp.workdps(WORK):
        v = _define(loss, y, **params).value(mpf(p))
    with mp.workdps(DPS):
        return +v


def slope(loss, p, y, **params):
    """The derivative of l in p; 0 at a minimizing kink."""
    with mp.workdps(WORK):
        v = _define(loss, y, **params).slope(mpf(p))
    with mp.workdps(DPS):
        return +v


def conjugate(loss, s, y, **params):
    """sup_p s p - l(p, y); +inf outside the domain, the limit on its edge."""
    with mp.workdps(WORK):
        l, s = _define(loss, y, **params), mpf(s)
        gain = lambda p: s * p - l.value(p)
        if s < l.ends[0] or s > l.ends[1]:
            return mp.inf
        if s in l.ends:  # the gain is monotone: constant beyond the last kink, or tends to its limit at infinity
            far = 1000 if s == l.ends[1] else -1000
            v = max(map(gain, l.kinks)) if l.kinks else mp.chop(gain(mpf(far)), tol=mpf("1e-80"))
        else:
            lo, hi = mpf(-1), mpf(1)
            while l.slope(lo) > s:
                lo *= 2
            while l.slope(hi) < s:
                hi *= 2
            for _ in range(2000):
                mid = (lo + hi) / 2
                if hi - lo < mpf("1e-100") * max(abs(lo), abs(hi)):
                    break
                if l.slope(mid) == s:
                    lo = hi = mid
                    break
                lo, hi = (mid, hi) if l.slope(mid) < s else (lo, mid)
            known = [q for q in l.argmin if mp.isfinite(q)] + l.kinks  # exact candidates for jumps and tiny s
            v = max(map(gain, [lo, hi, *known]))
    with mp.workdps(DPS):
        return +v


def step(loss, update, p, y, a, **params):
    """The surrogate slope c of an update with step size a > 0 at the prediction p."""
    with mp.workdps(WORK):
        l, p, a = _define(loss, y, **params), mpf(p), mpf(a)
        g = l.slope(p)
        if update not in UPDATES:
            raise ValueError(f"unknown update {update!r}")
        if g == 0 or update == "linearized":
            c = g
        elif update == "aprox":
            c = g * min(mpf(1), (l.value(p) - l.floor) / (a * g**2))
        elif update == "iwa":
            c = mp.sign(g) * _flow_travel(l, p, a) / a
        else:
            _, room, speed = _descent(l, p)
            lo, hi = _proximal_travel(speed, room, a, mpf("1e-55"))
            c = mp.sign(g) * (lo + hi) / 2 / a
    with mp.workdps(DPS):
        return +c
