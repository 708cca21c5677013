"""Draws from NumPy's Philox generator: `beta ALPHA COUNT`."""

import sys

from numpy.random import Generator, Philox

from worker import serve


def main():
    match sys.argv[1:]:
        case ["beta", alpha, count]:
            alpha, count, generator = float(alpha), int(count), Generator(Philox(11))
            serve(lambda: generator.beta(alpha, alpha, size=count))
        case other:
            sys.exit(f"the cases of rng are `beta ALPHA COUNT`, not {other}")


main()
