"""The streams of calmix_core::rng, from the description of their format.

Run, it prints the words that the test of the format pins.
"""

import math

MASK = 0xFFFFFFFF


def philox4x32_10(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(right >> 32) ^ c[1] ^ k[0], right & MASK, (left >> 32) ^ c[3] ^ k[1], left & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def words(x):
    return [x & MASK, x >> 32]


class Stream:
    """calmix_core::rng::Stream, from the description of its format."""

    def __init__(self, seed, domain, time, sample, occurrence=0):
        self.key = philox4x32_10([*words(time), domain, 0], words(seed))[:2]
        self.tail = [occurrence, *words(sample)]
        self.block, self.buffer = 0, []

    def u32(self):
        if not self.buffer:
            self.buffer = philox4x32_10([self.block, *self.tail], self.key)
            self.block += 1
        return self.buffer.pop(0)

    def u64(self):
        low = self.u32()
        return low | self.u32() << 32

    def uniform(self):
        return (self.u64() >> 11) * 2.0**-53

    def below(self, bound):
        rejected = (2**64 - bound) % bound
        while True:
            product = self.u64() * bound
            if product % 2**64 >= rejected:
                return product >> 64

    def normal(self):
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())

    def ln_gamma(self, alpha):
        d = alpha + 2 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            t = 1 + c * x
            if t <= 0:
                continue
            v, ln_v = t * t * t, 3 * math.log(t)
            if math.log(1 - self.uniform()) < 0.5 * x * x + d - d * v + d * ln_v:
                return math.log(d) + ln_v + math.log(1 - self.uniform()) / alpha

    def beta(self, alpha):
        first, second = self.ln_gamma(alpha), self.ln_gamma(alpha)
        return 1 / (1 + math.exp(second - first))


if __name__ == "__main__":
    seed, partner, time, sample = 0x0123456789ABCDEF, 8, 1 << 40, 77
    first = Stream(seed, partner, time, sample)
    print([hex(first.u32()) for _ in range(6)])
    print(hex(Stream(seed, partner, time, sample, occurrence=2).u32()))
