"""A plot as SVG: lines with error bars over the number of labels per class."""

import numpy as np

WIDTH, HEIGHT = 430, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 40
# Distinguishable with any colour vision (Okabe and Ito).
COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73"]


def plot(title, series):
    """`series` has a name, a dash pattern, a colour's number, and points (labels, mean, half of an interval) for each line."""
    points = [point for *_, line in series for point in line]
    labels = sorted({point[0] for point in points})
    low, high = min(mean - half for _, mean, half in points), max(mean + half for _, mean, half in points)
    step = 10 ** np.floor(np.log10((high - low) / 2))
    step *= 2 if (high - low) / step > 8 else 1
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step
    x = lambda at: LEFT + (np.log(at) - np.log(labels[0])) / (np.log(labels[-1]) - np.log(labels[0])) * (WIDTH - LEFT - RIGHT - 30) + 15
    y = lambda value: HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
    text = lambda at, down, words, anchor="middle": f'<text x="{at:.1f}" y="{down:.1f}" text-anchor="{anchor}">{words}</text>'
    drawn = [text(LEFT, 16, title, "start"), text((LEFT + WIDTH) / 2, HEIGHT - 6, "labels per class")]
    for tick in np.arange(round(low / step), round(high / step) + 1) * step:
        drawn.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        drawn.append(text(LEFT - 6, y(tick) + 4, f"{tick:.{max(0, -int(np.floor(np.log10(step))))}f}", "end"))
    drawn += [text(x(at), HEIGHT - BOTTOM + 16, at) for at in labels]
    for place, (name, dash, colour, line) in enumerate(series):
        # Side by side, so that error bars do not hide each other.
        shift = 3 * (place - (len(series) - 1) / 2)
        ink = f'stroke="{COLOURS[colour]}" fill="none" stroke-width="1.5"'
        path = "L".join(f"{x(at) + shift:.1f} {y(mean):.1f}" for at, mean, _ in line)
        drawn.append(f'<path d="M{path}" {ink} stroke-dasharray="{dash}"/>')
        for at, mean, half in line:
            drawn.append(f'<path d="M{x(at) + shift:.1f} {y(mean - half):.1f}V{y(mean + half):.1f}" {ink}/>')
        key = TOP + 8 + 16 * place
        drawn.append(f'<path d="M{WIDTH - 168} {key}h24" {ink} stroke-dasharray="{dash}"/>')
        drawn.append(text(WIDTH - 138, key + 4, name, "start"))
    style = "font: 12px sans-serif; background: #fff"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" style="{style}">\n' + "\n".join(drawn) + "\n</svg>\n"
