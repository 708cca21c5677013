"""Plots as SVG: lines with error bars, and rows of intervals, in one or several panels."""

import numpy as np

WIDTH, HEIGHT = 430, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 40
# Distinguishable with any colour vision (Okabe and Ito).
COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73"]


def plot(title, series):
    """One panel of lines over the labels per class."""
    return page([lines(title, series, "labels per class")])


def lines(title, series, x_label, is_log=True, key="top"):
    """`series` has a name, a dash pattern, a colour's number, and points (x, mean, half of an interval) for each line. `key` is
    where the names of the lines are: top, middle, bottom (right), or bottom left."""
    points = [point for *_, line in series for point in line]
    places = sorted({point[0] for point in points})
    low, high = min(mean - half for _, mean, half in points), max(mean + half for _, mean, half in points)
    step = 10 ** np.floor(np.log10((high - low) / 2))
    step *= 2 if (high - low) / step > 8 else 1
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step
    scale = np.log if is_log else float
    share = lambda at: (scale(at) - scale(places[0])) / (scale(places[-1]) - scale(places[0]))
    x = lambda at: LEFT + share(at) * (WIDTH - LEFT - RIGHT - 30) + 15
    y = lambda value: HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
    drawn = [text(LEFT, 16, title, "start"), text((LEFT + WIDTH) / 2, HEIGHT - 6, x_label)]
    for tick in np.arange(round(low / step), round(high / step) + 1) * step:
        drawn.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        drawn.append(text(LEFT - 6, y(tick) + 4, f"{tick:.{max(0, -int(np.floor(np.log10(step))))}f}", "end"))
    # With many points, about six are named.
    named = places if len(places) <= 8 else places[:: -(-len(places) // 6)]
    drawn += [text(x(at), HEIGHT - BOTTOM + 16, f"{at:g}") for at in named]
    for place, (name, dash, colour, line) in enumerate(series):
        # Side by side, so that error bars do not hide each other.
        shift = 3 * (place - (len(series) - 1) / 2)
        ink = f'stroke="{COLOURS[colour]}" fill="none" stroke-width="1.5"'
        path = "L".join(f"{x(at) + shift:.1f} {y(mean):.1f}" for at, mean, _ in line)
        drawn.append(f'<path d="M{path}" {ink} stroke-dasharray="{dash}"/>')
        for at, mean, half in line:
            drawn.append(f'<path d="M{x(at) + shift:.1f} {y(mean - half):.1f}V{y(mean + half):.1f}" {ink}/>')
        bottom = HEIGHT - BOTTOM - 16 * len(series)
        top = {"top": TOP + 8, "middle": (TOP + bottom) / 2}.get(key, bottom)
        left = LEFT + 10 if key == "bottom left" else WIDTH - 168
        drawn.append(f'<path d="M{left} {top + 16 * place:g}h24" {ink} stroke-dasharray="{dash}"/>')
        drawn.append(text(left + 30, top + 16 * place + 4, name, "start"))
    return "\n".join(drawn)


def intervals(title, found, x_label):
    """`found` has a name, a mean and half of an interval for each row, drawn around a line at zero."""
    limit = max(abs(mean) + half for _, mean, half in found)
    step = 10 ** np.floor(np.log10(limit))
    step *= 0.5 if limit / step < 2 else 1
    limit = np.ceil(limit / step) * step
    left = 190
    x = lambda value: left + (value + limit) / (2 * limit) * (WIDTH - left - RIGHT - 10)
    gap = (HEIGHT - TOP - BOTTOM) / len(found)
    drawn = [text(12, 16, title, "start"), text(x(0), HEIGHT - 6, x_label)]
    for tick in np.arange(-round(limit / step), round(limit / step) + 1) * step:
        ink = "#888" if tick == 0 else "#ddd"
        drawn.append(f'<path d="M{x(tick):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{ink}"/>')
        drawn.append(text(x(tick), HEIGHT - BOTTOM + 16, f"{tick:g}".replace("-", "−")))
    for place, (name, mean, half) in enumerate(found):
        y = TOP + gap * (place + 0.5)
        drawn.append(text(left - 8, y + 4, name, "end"))
        drawn.append(f'<path d="M{x(mean - half):.1f} {y:.1f}H{x(mean + half):.1f}" stroke="{COLOURS[1]}" stroke-width="1.5"/>')
        drawn.append(f'<circle cx="{x(mean):.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[1]}"/>')
    return "\n".join(drawn)


def text(at, down, words, anchor="middle"):
    return f'<text x="{at:.1f}" y="{down:.1f}" text-anchor="{anchor}">{words}</text>'


def page(panels):
    """One panel, or several with two in a row."""
    columns = min(2, len(panels))
    width, height = columns * WIDTH, -(-len(panels) // columns) * HEIGHT
    drawn = panels[0] if len(panels) == 1 else "\n".join(
        f'<g transform="translate({place % columns * WIDTH} {place // columns * HEIGHT})">\n{panel}\n</g>'
        for place, panel in enumerate(panels)
    )
    style = "font: 12px sans-serif; background: #fff"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" style="{style}">\n{drawn}\n</svg>\n'
