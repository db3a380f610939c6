# SPDX-License-Identifier: MIT
"""Draws lines over axes as SVG, by hand: no library, colours by name so that the page decides for light and dark."""
import html
import math

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 46
COLOURS = 7  # --line-0 ... of the page
# A logarithmic scale where the values span more than this.
LOG_FROM = 20
# Room above and below the values, as a share of their span.
AIR = 0.06
MARKERS = ("circle", "square", "triangle", "diamond")


def number(value):
    """A figure as people write it: three digits that count, thousands by comma."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(size)))
    text = f"{value:.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def tick_text(value):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size and abs(value / size - round(value / size, 3)) < 1e-9:
            return number(value / size) + unit
    return number(value)


def log_ticks(low, high):
    ticks = [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [tick for tick in ticks if low <= tick * 1.0001 and tick <= high * 1.0001]
    if len(inside) >= 3:
        return inside
    finer = sorted({tick * factor for tick in ticks for factor in (1, 2, 5)})
    return [tick for tick in finer if low <= tick * 1.0001 and tick <= high * 1.0001]


def linear_ticks(low, high):
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= 6:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


class Axis:
    """From values to places along one edge."""

    def __init__(self, values, begin, end, log=None, from_zero=False):
        low, high = min(values), max(values)
        self.log = low > 0 and (high / low > LOG_FROM if log is None else log)
        if self.log:
            low, high = (low / 2, high * 2) if low == high else (low, high)
            air = (high / low) ** AIR
            self.low, self.high = low / air, high * air
            self.ticks = log_ticks(self.low, self.high)
        else:
            low = min(low, 0) if from_zero else low
            high = high if high > low else low + 1
            air = (high - low) * AIR
            self.low, self.high = (low if low == 0 else low - air), high + air
            self.ticks = linear_ticks(self.low, self.high)
        self.begin, self.end = begin, end

    def at(self, value):
        scale = math.log10 if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.begin + share * (self.end - self.begin)


def marker(kind, x, y, colour, title):
    style = f'style="fill:var(--line-{colour})"'
    title = f"<title>{html.escape(title)}</title>"
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {style}>{title}</circle>'
    if kind == "square":
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" {style}>{title}</rect>'
    corners = ((0, -5), (4.5, 3.5), (-4.5, 3.5)) if kind == "triangle" else ((0, -5), (5, 0), (0, 5), (-5, 0))
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {style}>{title}</polygon>'


def frame(x, y, x_label, y_label):
    """Grid, numbers and labels of the axes."""
    parts = []
    for tick in x.ticks:
        at = x.at(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}"/>'
                     f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick_text(tick)}</text>')
    for tick in y.ticks:
        at = y.at(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
                     f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{tick_text(tick)}</text>')
    scales = [" (log)" if axis.log else "" for axis in (x, y)]
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    parts.append(f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
                 f'{html.escape(x_label + scales[0])}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text class="label" x="14" y="{middle:.0f}" text-anchor="middle" '
                 f'transform="rotate(-90 14 {middle:.0f})">{html.escape(y_label + scales[1])}</text>')
    return parts


def limits_of(y, limits):
    """Lines that the values are to stay below."""
    parts = []
    for value, text in limits:
        at = y.at(value)
        parts.append(f'<line class="limit" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
                     f'<text class="limit" x="{WIDTH - RIGHT - 4}" y="{at - 5:.1f}" text-anchor="end">'
                     f'{html.escape(text)}</text>')
    return parts


def svg(title, x_label, y_label, series, limits=(), x_log=None, y_log=None, marked=True):
    """series: (name, [(x, y), ...]) each; limits: (value, text) each. Nothing where no series has a point."""
    points = [point for _, line in series for point in line]
    if not points:
        return ""
    x = Axis([point[0] for point in points], LEFT, WIDTH - RIGHT, x_log)
    y = Axis([point[1] for point in points] + [value for value, _ in limits], HEIGHT - BOTTOM, TOP, y_log, from_zero=True)
    parts = frame(x, y, x_label, y_label) + limits_of(y, limits)
    for index, (name, line) in enumerate(series):
        colour = index % COLOURS
        places = [(x.at(one), y.at(other)) for one, other in line]
        path = " ".join(f"{one:.1f},{other:.1f}" for one, other in places)
        parts.append(f'<polyline class="line" points="{path}" style="stroke:var(--line-{colour})"/>')
        if marked:
            parts += [marker(MARKERS[index % len(MARKERS)], *place, colour,
                             f"{name}: {number(value[1])} {y_label} at {number(value[0])} {x_label}")
                      for place, value in zip(places, line)]
    return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>')


def key(names, marked=True):
    """Legend of the colours and marks."""
    items = []
    for index, name in enumerate(names):
        colour = index % COLOURS
        mark = marker(MARKERS[index % len(MARKERS)], 13, 7, colour, name) if marked else ""
        items.append(f'<span><svg class="key" viewBox="0 0 26 14" width="26" height="14" aria-hidden="true">'
                     f'<line x1="1" y1="7" x2="25" y2="7" class="line" style="stroke:var(--line-{colour})"/>{mark}</svg>'
                     f'{html.escape(name)}</span>')
    return f'<p class="keys">{"".join(items)}</p>'
