// GrammarStore: compiled grammars by what they were compiled from, so that an agent's tool set is compiled once; new
// ones are compiled on a thread of the store's own, one after the other, so that a large schema stalls nobody's
// decoding.
//
// Bounds: kept grammars take at most `most_bytes` (least recently used go first; those in use live on with their
// answers), and at most `most_waiting` compilations wait. A refusal is kept like a grammar. The compiler's tables are
// built with the first grammar.
// Thread safety: any thread. The destructor waits for the compilation under way; what waits is told kCancelled.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/hash128.h"
#include "base/status.h"
#include "engine/grammar.h"

namespace warmpath {

class GrammarStore {
 public:
  struct Options {
    size_t most_bytes = size_t{256} << 20;
    size_t most_waiting = 64;
  };
  using Compiled = Result<std::shared_ptr<const CompiledGrammar>>;
  using Ready = std::function<void(const Compiled&)>;
  using MakeCompiler = std::function<Result<std::unique_ptr<GrammarCompiler>>()>;

  GrammarStore(MakeCompiler make_compiler, Options options);
  explicit GrammarStore(MakeCompiler make_compiler) : GrammarStore(std::move(make_compiler), Options{}) {}
  ~GrammarStore();

  // Calls `ready` once: now, when the grammar is known, or from the store's thread. REQUIRES validate(grammar).
  void get(const Grammar& grammar, Ready ready);

  size_t bytes() const;
  int64_t compilations() const;

 private:
  struct Entry {
    Grammar grammar;
    std::optional<Compiled> compiled;  // unset: waits or is being compiled
    std::vector<Ready> waiting;
    size_t bytes = 0;
    std::list<Hash128>::iterator age;  // in ages_, once compiled
  };

  void run();
  Compiled compile(const Grammar& grammar);
  void evict();  // with the lock held

  const MakeCompiler make_compiler_;
  const Options options_;
  std::unique_ptr<GrammarCompiler> compiler_;  // the thread's

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::unordered_map<Hash128, Entry> entries_;
  std::list<Hash128> ages_;  // least recently used first
  std::list<Hash128> queue_;
  size_t bytes_ = 0;
  int64_t compilations_ = 0;
  bool stopping_ = false;
  std::optional<pthread_t> thread_;  // started with the first grammar; has a stack of its own size
};

}  // namespace warmpath
