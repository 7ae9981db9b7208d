#include "engine/grammar_store.h"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace warmpath {

namespace {

// The compiler recurses over what schemas nest; its bounds (text/schema/json_schema.h) fit in this with much to spare.
constexpr size_t kStackBytes = size_t{64} << 20;
constexpr double kSlowSeconds = 1;

void append(std::string& bytes, uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void serialize(const Grammar& grammar, std::string& bytes) {
  append(bytes, static_cast<uint64_t>(grammar.kind));
  append(bytes, grammar.text.size());
  bytes += grammar.text;
  append(bytes, static_cast<uint64_t>(grammar.least));
  append(bytes, static_cast<uint64_t>(grammar.most));
  append(bytes, static_cast<uint64_t>(grammar.most_space));
  append(bytes, grammar.tokens.size());
  for (const TokenId token : grammar.tokens) append(bytes, static_cast<uint64_t>(token));
  append(bytes, grammar.excluded.size());
  for (const std::string& excluded : grammar.excluded) {
    append(bytes, excluded.size());
    bytes += excluded;
  }
  append(bytes, grammar.parts.size());
  for (const Grammar& part : grammar.parts) serialize(part, bytes);
}

}  // namespace

GrammarStore::GrammarStore(MakeCompiler make_compiler, Options options)
    : make_compiler_(std::move(make_compiler)), options_(options) {}

GrammarStore::~GrammarStore() {
  std::vector<Ready> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  if (thread_) pthread_join(*thread_, nullptr);
  for (auto& [key, entry] : entries_) {
    for (Ready& ready : entry.waiting) left.push_back(std::move(ready));
  }
  const Compiled cancelled = Status(StatusCode::kCancelled, "the replica is shutting down");
  for (const Ready& ready : left) ready(cancelled);
}

void GrammarStore::get(const Grammar& grammar, Ready ready) {
  std::string bytes;
  serialize(grammar, bytes);
  const Hash128 key = hash128(bytes);
  std::optional<Compiled> answer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.grammar == grammar) {
      Entry& entry = found->second;
      if (!entry.compiled) {
        entry.waiting.push_back(std::move(ready));
        return;
      }
      ages_.splice(ages_.end(), ages_, entry.age);
      answer = entry.compiled;
    } else if (stopping_) {
      answer = Status(StatusCode::kCancelled, "the replica is shutting down");
    } else if (found != entries_.end() || queue_.size() >= options_.most_waiting) {
      answer = resource_exhausted(
          fmt::format("{} grammars wait to be compiled, which is the limit: retry later", queue_.size()));
    } else {
      Entry& entry = entries_[key];
      entry.grammar = grammar;
      entry.bytes = sizeof(Entry) + 2 * bytes.size();
      entry.waiting.push_back(std::move(ready));
      bytes_ += entry.bytes;
      queue_.push_back(key);
      if (!thread_) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, kStackBytes);
        pthread_t thread;
        const auto body = [](void* self) -> void* {
          static_cast<GrammarStore*>(self)->run();
          return nullptr;
        };
        const int failure = pthread_create(&thread, &attributes, body, this);
        pthread_attr_destroy(&attributes);
        WARMPATH_CHECK(failure == 0, "the system has no thread left for compiling grammars");
        thread_ = thread;
      }
    }
  }
  if (answer) return ready(*answer);
  wake_.notify_one();
}

GrammarStore::Compiled GrammarStore::compile(const Grammar& grammar) {
  if (!compiler_) {
    Result<std::unique_ptr<GrammarCompiler>> compiler = make_compiler_();
    if (!compiler.ok()) return compiler.status();
    compiler_ = std::move(*compiler);
  }
  const auto begin = std::chrono::steady_clock::now();
  Compiled compiled = compiler_->compile(grammar);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (seconds > kSlowSeconds) log_warn("slow_grammar", {{"seconds", seconds}, {"ok", compiled.ok()}});
  return compiled;
}

void GrammarStore::run() {
  pthread_setname_np(pthread_self(), "grammars");
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Hash128 key = queue_.front();
    queue_.pop_front();
    const Grammar grammar = entries_.at(key).grammar;
    lock.unlock();
    const Compiled compiled = compile(grammar);
    lock.lock();
    Entry& entry = entries_.at(key);
    ++compilations_;
    entry.compiled = compiled;
    entry.age = ages_.insert(ages_.end(), key);
    if (compiled.ok()) {
      entry.bytes += (*compiled)->bytes();
      bytes_ += (*compiled)->bytes();
    }
    const std::vector<Ready> waiting = std::exchange(entry.waiting, {});
    evict();
    lock.unlock();
    for (const Ready& ready : waiting) ready(compiled);
    lock.lock();
  }
}

void GrammarStore::evict() {
  while (bytes_ > options_.most_bytes && !ages_.empty()) {
    const auto oldest = entries_.find(ages_.front());
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
    ages_.pop_front();
  }
}

size_t GrammarStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

int64_t GrammarStore::compilations() const {
  const std::lock_guard lock(mutex_);
  return compilations_;
}

}  // namespace warmpath
