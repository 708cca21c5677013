"""The stream format of calmix_core::rng, from its description: prints the words that the test pins."""

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


def blocks(seed, domain, time, sample, occurrence, count):
    key = philox4x32_10([*words(time), domain, 0], words(seed))[:2]
    return [w for b in range(count) for w in philox4x32_10([b, occurrence, *words(sample)], key)]


if __name__ == "__main__":
    partner = 8
    print([hex(w) for w in blocks(0x0123456789ABCDEF, partner, 1 << 40, 77, 0, 2)[:6]])
    print(hex(blocks(0x0123456789ABCDEF, partner, 1 << 40, 77, 2, 1)[0]))
