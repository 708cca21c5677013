"""The order format of calmix_data::order, from its description: prints the places that the test pins.

Needs nothing but Python 3; the streams come from calmix-core's own description of them.
"""

import math
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "calmix-core/tests/golden"))
from philox import Stream  # noqa: E402

MASK = (1 << 64) - 1
UNLABELLED_ORDER = 3
CHILD = 12
MEMBERSHIP = 13
BLOCK = 18


def draws(seed, domain, epoch, length, count):
    """64-bit draws of the stream whose sample is the length."""
    stream = Stream(seed, domain, epoch, length)
    return [stream.u64() for _ in range(count)]


def table(seed, domain, epoch, length, sample=None):
    """Fisher and Yates from the end, indices by Lemire's method. The sample of the stream is the length, unless given."""
    stream = Stream(seed, domain, epoch, length if sample is None else sample)
    items = list(range(length))
    for last in range(length - 1, 0, -1):
        other = stream.below(last + 1)
        items[last], items[other] = items[other], items[last]
    return items


def mix(x):
    x ^= x >> 27
    x = x * 0x3C79AC492BA7B653 & MASK
    x ^= x >> 33
    x = x * 0x1C69B3F74AC4AE35 & MASK
    return x ^ x >> 27


def network(seed, domain, epoch, length, place, sample=None):
    """Eight rounds over rows × columns, again while the value is not below the length."""
    first, step = draws(seed, domain, epoch, length if sample is None else sample, 2)
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


def permutation(seed, domain, time, length, place, sample=None):
    """A table up to 4,096 samples, a network above."""
    if length <= 4096:
        return table(seed, domain, time, length, sample)[place]
    return network(seed, domain, time, length, place, sample)


def visit(seed, length, micro_batches, micro_batch, position):
    """What one of several micro-batches draws at a position: the slot, and the sample of the stream that is in it."""
    own = len(range(micro_batch, length, micro_batches))
    epoch, place = divmod(position, own)
    child = draws(seed, CHILD, 0, micro_batch, 1)[0]
    slot = permutation(child, UNLABELLED_ORDER, epoch, own, place)
    return slot, permutation(seed, MEMBERSHIP, 0, length, micro_batch + micro_batches * slot)


def block_visit(seed, lengths, micro_batches, block, micro_batch, epoch, place):
    """What a micro-batch draws at a place of an epoch in the order by block: the sample of the stream."""
    firsts = [sum(lengths[:file]) for file in range(len(lengths))]
    files = range(len(lengths))
    if micro_batches > 1:
        files = [permutation(seed, MEMBERSHIP, 1, len(lengths), at) for at in files]
    row = [(file, sample) for file in files for sample in range(firsts[file], firsts[file] + lengths[file])]
    pieces = [len(range(s, len(row), micro_batches)) for s in range(micro_batches)]
    begin = sum(pieces[:micro_batch])
    piece = row[begin : begin + pieces[micro_batch]]
    segments = []
    for file, sample in piece:
        if not segments or segments[-1][0] != file:
            segments.append((file, []))
        segments[-1][1].append(sample)
    own = draws(seed, CHILD, 0, micro_batch, 1)[0] if micro_batches > 1 else seed
    m = len(segments)
    ordered = [segments[permutation(own, BLOCK, epoch, m, at, 0)][1] for at in range(m)]
    blocks = -(-m // block)
    visited = []
    for b in range(blocks):
        inside = sum(ordered[b * m // blocks : (b + 1) * m // blocks], [])
        visited.append((b, inside))
    for b, inside in visited:
        if place < len(inside):
            return inside[permutation(own, BLOCK, epoch, len(inside), place, b + 1)]
        place -= len(inside)
    raise IndexError(place)


if __name__ == "__main__":
    print(10, table(9, UNLABELLED_ORDER, 3, 10)[:4])
    for n in (50_000, 1_000_000_000):
        print(n, [network(9, UNLABELLED_ORDER, 3, n, i) for i in range(4)])
    for n in (10, 10_001, 1_000_000_000):
        for micro_batch in (0, 3):
            own = len(range(micro_batch, n, 4))
            print(n, "micro-batch", micro_batch, "of 4", [visit(9, n, 4, micro_batch, 3 * own + i) for i in range(2)])
    lengths = [3_000 + 17 * file for file in range(20)]
    for micro_batches, micro_batch in ((1, 0), (4, 0), (4, 3)):
        print("blocks", micro_batches, micro_batch, [block_visit(9, lengths, micro_batches, 3, micro_batch, 2, at) for at in (0, 1, 999)])
