"""Records commands in a terminal and draws them as an SVG that plays: `record`. It needs no script, and shows the last screen where
nothing may move."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time

COLUMNS, ROWS = 92, 26
# Pauses are cut to this, and screens that change faster are one: in seconds.
PAUSE, FRAME = 0.25, 0.1
# How long the last screen stays.
REST = 6.0
ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")
SIZE, WIDTH, LINE = 14, 8.43, 20
MARGIN = 16
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"


class Screen:
    """A terminal as far as calmix uses it: lines that wrap, return and are erased. Colours are left out."""

    def __init__(self):
        self.lines, self.column = [""], 0

    def feed(self, text):
        place = 0
        while place < len(text):
            escape = ESCAPE.match(text, place)
            if escape:
                if escape[2] == "K":
                    self.lines[-1] = self.lines[-1][: self.column]
                place = escape.end()
                continue
            letter = text[place]
            place += 1
            if letter == "\r":
                self.column = 0
            elif letter == "\n":
                self.lines.append("")
                self.column = 0
            else:
                if self.column == COLUMNS:
                    self.lines.append("")
                    self.column = 0
                line = self.lines[-1]
                self.lines[-1] = line[: self.column].ljust(self.column) + letter + line[self.column + 1 :]
                self.column += 1

    def shown(self):
        return [line.rstrip() for line in self.lines[-ROWS:]]


def chunks(command, folder):
    """What a command writes to a terminal, with the seconds since it began."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdin=other, stdout=other, stderr=other, close_fds=True)
    os.close(other)
    text = b""
    while True:
        try:
            read = os.read(main, 1 << 16)
        except OSError:  # the program has closed its side
            break
        if not read:
            break
        text += read
        # A letter of several bytes may be cut.
        whole = text.decode(errors="ignore")
        text = text[len(whole.encode()) :]
        yield time.monotonic() - began, whole
    os.close(main)
    if process.wait():
        raise SystemExit(f"{command} ended with {process.returncode}")


def frames(commands, folder, paths):
    """The screens with the seconds at which each appears, pauses cut; commands are pairs of what is typed and what runs. Paths of
    this machine are shown by other ones."""
    screen, found, clock = Screen(), [], 0.0
    for typed, command in commands:
        for length in range(0, len(typed) + 1, 3):
            found.append((clock, screen.shown()[:-1] + ["$ " + typed[:length]]))
            clock += 0.06
        screen.feed(f"$ {typed}\r\n")
        clock += 0.3
        before = 0.0
        for at, text in chunks(command, folder):
            clock += min(at - before, PAUSE)
            before = at
            for path, shown in paths.items():
                text = text.replace(path, shown)
            # A screen erased and written at once is one frame.
            screen.feed(text)
            if found and clock - found[-1][0] < FRAME:
                found.pop()
                clock = max(clock, found[-1][0] + FRAME) if found else clock
            found.append((clock, screen.shown()))
        clock += 1.2
    found.append((clock, screen.shown()))
    return found, clock + REST


def spans(found, end):
    """Every line of every screen: row, text, and from when until when it stays there."""
    open_at, done = {}, []
    for at, lines in [*found, (end, [])]:
        for row in range(ROWS):
            text = lines[row] if row < len(lines) else ""
            began = open_at.get(row)
            if began and began[1] != text:
                done.append((row, began[1], began[0], at))
                del open_at[row]
            if text and row not in open_at:
                open_at[row] = (at, text)
    return done


def draw(found, end, title):
    height = ROWS * LINE + 2 * MARGIN
    width = round(COLUMNS * WIDTH + 2 * MARGIN)
    rules, texts = [], []
    for number, (row, text, start, stop) in enumerate(spans(found, end)):
        words = text.replace("&", "&amp;").replace("<", "&lt;")
        is_last = stop >= end
        kind = "k" if text.startswith("$ ") else "t"
        first, last = (f"{100 * at / end:.2f}%" for at in (start, stop))
        rule = f"0%{{visibility:hidden}}{first}{{visibility:visible}}" if start else "0%{visibility:visible}"
        rules.append(f"@keyframes f{number}{{{rule}" + ("}" if is_last else f"{last}{{visibility:hidden}}}}"))
        look = f'class="{kind}{" e" if is_last else ""}" style="animation-name:f{number}"'
        texts.append(f'<text x="{MARGIN}" y="{MARGIN + row * LINE + SIZE}" {look}>{words}</text>')
    style = f"""text{{font:{SIZE}px {FONT};fill:#e6edf3;white-space:pre;visibility:hidden;animation:{end:.2f}s step-end infinite}}
.k{{fill:#7ee787}}.e{{visibility:visible}}
@media(prefers-reduced-motion:reduce){{text{{animation:none}}}}"""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title>\n<style>{style}\n'
    panel = f'</style>\n<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n'
    return begin + "\n".join(rules) + "\n" + panel + "\n".join(texts) + "\n</svg>\n"


def record(commands, folder, paths, title):
    """The SVG of commands that run one after the other in a folder."""
    found, end = frames(commands, folder, paths)
    return draw(found, end, title)
