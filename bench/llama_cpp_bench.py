#!/usr/bin/env python3
"""llama.cpp beside bench_engine: measures one cell a line on request, on the same model file.

    llama_cpp_bench.py MODEL.gguf        (bench_engine --llama-python PYTHON starts it; needs the llama-cpp-python package)

Reads lines `KIND TOKENS STEPS THREADS FLASH` and answers each with a line: seconds, CPU seconds.
  prefill  TOKENS new tokens of an empty sequence; logits of the last (STEPS is not used)
  decode   STEPS single tokens after TOKENS tokens, whose own time does not count
  batch    the same for 16 sequences at once
FLASH 1 or 0 switches flash attention. It uses the C interface, as llama.cpp's own llama-bench does: no sampling, no text.
"""
import sys
import time

import llama_cpp as ll

SEQUENCES = 16
UBATCH = 512
SILENCE = ll.llama_log_callback(lambda level, text, data: None)  # must live as long as llama.cpp may log


class Stopwatch:
    """Seconds since it was made, and those that this process's threads have computed."""

    def __init__(self):
        self.started = time.perf_counter(), time.process_time()

    def read(self):
        return time.perf_counter() - self.started[0], time.process_time() - self.started[1]


class Context:
    """One llama.cpp context: `sequences` sequences of up to `tokens` tokens each."""

    def __init__(self, model, tokens, sequences, threads, flash):
        params = ll.llama_context_default_params()
        params.n_ctx = tokens * sequences
        params.n_batch = 2048
        params.n_ubatch = UBATCH
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = ll.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else ll.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.no_perf = True
        self.context = ll.llama_init_from_model(model, params)
        if not self.context:
            raise RuntimeError("llama.cpp made no context")
        self.memory = ll.llama_get_memory(self.context)
        self.vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
        self.batch = ll.llama_batch_init(2048, 0, 1)
        self.length = 0  # of every sequence

    def close(self):
        ll.llama_batch_free(self.batch)
        ll.llama_free(self.context)

    def decode(self, rows, logits):
        """rows: (sequence, position); `logits`: which of them are wanted."""
        for index, (sequence, position) in enumerate(rows):
            self.batch.token[index] = (position * 7919 + sequence * 104729 + 13) % self.vocabulary
            self.batch.pos[index] = position
            self.batch.n_seq_id[index] = 1
            self.batch.seq_id[index][0] = sequence
            self.batch.logits[index] = logits(index)
        self.batch.n_tokens = len(rows)
        if ll.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")

    def extend(self, sequence, begin, end):
        for start in range(begin, end, 2048):
            stop = min(start + 2048, end)
            self.decode([(sequence, p) for p in range(start, stop)], lambda i: stop == end and i == stop - start - 1)
        ll.llama_synchronize(self.context)

    def reach(self, tokens, sequences):
        """Every sequence has exactly `tokens` tokens; what is there already is kept."""
        for sequence in range(sequences):
            if self.length > tokens:
                ll.llama_memory_seq_rm(self.memory, sequence, tokens, -1)
            elif self.length < tokens:
                self.extend(sequence, self.length, tokens)
        self.length = tokens

    def prefill(self, tokens):
        ll.llama_memory_clear(self.memory, False)
        watch = Stopwatch()
        self.extend(0, 0, tokens)
        self.length = tokens
        return watch.read()

    def steps(self, tokens, count, sequences):
        self.reach(tokens, sequences)
        watch = Stopwatch()
        for step in range(count):
            self.decode([(sequence, tokens + step) for sequence in range(sequences)], lambda i: True)
            ll.llama_synchronize(self.context)
        self.length = tokens + count
        return watch.read()


def main():
    ll.llama_log_set(SILENCE, None)
    ll.llama_backend_init()
    model = ll.llama_model_load_from_file(sys.argv[1].encode(), ll.llama_model_default_params())
    if not model:
        sys.exit(f"llama.cpp cannot load {sys.argv[1]}")
    print("ready", flush=True)
    contexts = {}
    for line in sys.stdin:
        kind, *numbers = line.split()
        tokens, steps, threads, flash = map(int, numbers)
        sequences = SEQUENCES if kind == "batch" else 1
        key = (threads, flash, sequences)
        if key not in contexts:
            contexts[key] = Context(model, 6144 if sequences == 1 else 256, sequences, threads, flash)
        context = contexts[key]
        seconds = context.prefill(tokens) if kind == "prefill" else context.steps(tokens, steps, sequences)
        print(f"{seconds[0]:.6f} {seconds[1]:.6f}", flush=True)


if __name__ == "__main__":
    main()
