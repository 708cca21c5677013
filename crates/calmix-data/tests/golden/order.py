"""The order format of calmix_data::order, from its description: prints the places that the test pins.

Needs nothing but Python 3; the streams come from calmix-core's own description of them.
"""

import math
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "calmix-core/tests/golden"))
from philox import blocks  # noqa: E402

MASK = (1 << 64) - 1
UNLABELLED_ORDER = 3


def draws(seed, domain, epoch, length, count):
    """64-bit draws of the stream whose sample is the length, low word first."""
    w = blocks(seed, domain, epoch, length, 0, (count + 1) // 2)
    return [w[i] | w[i + 1] << 32 for i in range(0, 2 * count, 2)]


def table(seed, domain, epoch, length):
    """Fisher and Yates from the end, indices by Lemire's method."""
    source = iter(draws(seed, domain, epoch, length, 2 * length + 64))
    items = list(range(length))
    for last in range(length - 1, 0, -1):
        bound = last + 1
        while True:
            product = next(source) * bound
            if product & MASK >= (1 << 64) % bound:
                break
        other = product >> 64
        items[last], items[other] = items[other], items[last]
    return items


def mix(x):
    x ^= x >> 27
    x = x * 0x3C79AC492BA7B653 & MASK
    x ^= x >> 33
    x = x * 0x1C69B3F74AC4AE35 & MASK
    return x ^ x >> 27


def network(seed, domain, epoch, length, place):
    """Eight rounds over rows × columns, again while the value is not below the length."""
    first, step = draws(seed, domain, epoch, length, 2)
    keys = [mix(first + (step | 1) * n & MASK) for n in range(8)]
    rows = math.isqrt(length - 1) + 1
    columns = -(-length // rows)
    while True:
        row, column = divmod(place, columns)
        for even, odd in zip(keys[::2], keys[1::2]):
            row = (row + (mix(column ^ even) * rows >> 64)) % rows
            column = (column + (mix(row ^ odd) * columns >> 64)) % columns
        place = row * columns + column
        if place < length:
            return place


if __name__ == "__main__":
    print(10, table(9, UNLABELLED_ORDER, 3, 10)[:4])
    for n in (50_000, 1_000_000_000):
        print(n, [network(9, UNLABELLED_ORDER, 3, n, i) for i in range(4)])
