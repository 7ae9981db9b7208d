"""Dynamo's RadixTree on bench_index's shape (a), for the same run: prints "name value" lines.

usage: dynamo_index_peer.py HOLDERS SESSIONS_PER_HOLDER, with a Python that has `ai-dynamo-runtime` (PyPI).

The tree is fed through its own binding, in events of JSON as its workers send them. Bytes are the growth of resident
memory; what Python itself keeps is small beside it (events are made one at a time). A lookup's time includes the
binding's hop, whose own cost is measured with a chain that nobody has and reported beside it.
"""
import gc
import os
import sys
import time

from dynamo._core import RadixTree

HEADS, HEAD_BLOCKS, OWN_BLOCKS = 391, 32, 96
MASK = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def block(chain, position):
    return mix(((chain * 0x10001 + position + 1) * 0x9E3779B97F4A7C15) & MASK) >> 1


def stretch(chain, first, count):
    return [block(chain, n) for n in range(first, first + count)]


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def stored(parent, blocks):
    body = ",".join('{"block_hash":%d,"tokens_hash":%d}' % (b, b) for b in blocks)
    parent = "null" if parent is None else str(parent)
    return ('{"event_id":0,"data":{"stored":{"parent_hash":%s,"blocks":[%s]}}}' % (parent, body)).encode()


def main():
    holders, sessions = int(sys.argv[1]), int(sys.argv[2])
    heads = [stretch(1_000_000_000 + n, 0, HEAD_BLOCKS) for n in range(min(HEADS, sessions))]
    tree = RadixTree()
    gc.collect()
    before = resident_bytes()
    blocks = 0
    in_tree_s = 0.0
    for holder in range(holders):
        for head in heads:
            event = stored(None, head)
            begun = time.process_time()
            tree.apply_event(holder, event)
            in_tree_s += time.process_time() - begun
            blocks += HEAD_BLOCKS
        for number in range(sessions):
            own = stretch(holder * 1_000_000 + number + 1, HEAD_BLOCKS, OWN_BLOCKS)
            event = stored(heads[number % len(heads)][-1], own)
            begun = time.process_time()
            tree.apply_event(holder, event)
            in_tree_s += time.process_time() - begun
            blocks += OWN_BLOCKS
    gc.collect()
    print("holder_blocks", blocks)
    print("bytes_per_holder_block", (resident_bytes() - before) / blocks)
    print("build_blocks_per_s", blocks / in_tree_s)

    def median_ns(chains):
        times = []
        for chain in chains:
            for _ in range(3):
                begun = time.perf_counter_ns()
                tree.find_matches(chain)
                times.append(time.perf_counter_ns() - begun)
        times.sort()
        return times[len(times) // 2]

    lone = []
    for n in range(100):
        chain = stretch(2_000_000_000 + n, 0, HEAD_BLOCKS + OWN_BLOCKS)
        tree.apply_event(n % holders, stored(None, chain))
        lone.append(chain)
    asked = [heads[n % len(heads)] + stretch((n % holders) * 1_000_000 + n % sessions + 1, HEAD_BLOCKS, OWN_BLOCKS)
             for n in range(100)]
    print("query1_hot_p50_ns", median_ns(lone))
    print("session_hot_p50_ns", median_ns(asked))
    print("hop_p50_ns", median_ns([stretch(3_000_000_000 + n, 0, HEAD_BLOCKS + OWN_BLOCKS) for n in range(100)]))


main()
