#include "kernels/cuda/shim/fiber_grid.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace warmpath::cuda_shim {
namespace {

namespace context = boost::context;

enum class Wait : uint8_t { kNothing, kBlock, kWarp, kDone };

// A CUDA thread. `home` is the fiber that runs it once it has been suspended.
struct Thread {
  dim3 index;
  unsigned linear = 0;
  Wait wait = Wait::kNothing;
  uint32_t mask = 0;
  unsigned source = 0;
  uint64_t given = 0;
  uint64_t received = 0;
  context::fiber home;
};

struct Warp {
  uint32_t exists = 0;
  uint32_t arrived = 0;
  uint32_t done = 0;
};

struct Block {
  dim3 index;
  dim3 size;
  dim3 grid;
  unsigned char* shared = nullptr;
  const std::function<void()>* kernel = nullptr;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<unsigned> order;
  size_t next = 0;  // in `order`
  Thread* current = nullptr;
  context::fiber scheduler;
  std::vector<std::unique_ptr<unsigned char[]>> stacks;
  size_t stacks_used = 0;
};

thread_local Block* running = nullptr;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "cuda_shim: %s (block %u,%u,%u thread %u)\n", what, running->index.x, running->index.y,
               running->index.z, running->current == nullptr ? 0 : running->current->linear);
  std::abort();
}

void suspend(Wait wait) {
  Thread* self = running->current;
  self->wait = wait;
  running->scheduler = std::move(running->scheduler).resume();
  running->current = self;
}

// Fibers take their stacks from the block and give none back: the next block uses them again.
class StackPool {
 public:
  explicit StackPool(Block& block) : block_(&block) {}
  context::stack_context allocate() {
    if (block_->stacks_used == block_->stacks.size()) {
      block_->stacks.push_back(std::make_unique_for_overwrite<unsigned char[]>(options().stack_bytes));
    }
    context::stack_context stack;
    stack.size = options().stack_bytes;
    stack.sp = block_->stacks[block_->stacks_used++].get() + stack.size;
    return stack;
  }
  void deallocate(context::stack_context&) {}

 private:
  Block* block_;
};

// Runs threads that have not started until one suspends; then the scheduler starts another fiber for the rest.
context::fiber start_threads(context::fiber&& scheduler) {
  running->scheduler = std::move(scheduler);
  while (running->next < running->order.size()) {
    Thread* self = running->current = &running->threads[running->order[running->next++]];
    (*running->kernel)();
    self->wait = Wait::kDone;
    running->current = self;
    running->warps[self->linear / 32].done |= 1u << (self->linear % 32);
  }
  return std::move(running->scheduler);
}

// The lanes of `mask` meet here; true for the last one, which then serves the others. `*lanes` are those that take
// part.
bool warp_arrive(uint32_t mask, uint32_t* lanes) {
  Thread* self = running->current;
  Warp& warp = running->warps[self->linear / 32];
  const unsigned own = self->linear % 32;
  if ((mask >> own & 1u) == 0) fail("a lane is not in its own warp mask");
  self->mask = mask;
  warp.arrived |= 1u << own;
  *lanes = mask & warp.exists & ~warp.done;  // lanes that have returned do not hold up the rest
  if ((warp.arrived & *lanes) != *lanes) {
    suspend(Wait::kWarp);
    return false;
  }
  warp.arrived &= ~*lanes;
  return true;
}

template <typename Serve>
uint64_t warp_collective(uint32_t mask, Serve serve) {
  Thread* self = running->current;
  uint32_t lanes = 0;
  if (!warp_arrive(mask, &lanes)) return self->received;
  Thread* first = &running->threads[self->linear / 32 * 32];
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    if (first[std::countr_zero(rest)].mask != mask) fail("lanes of one warp wait with different masks");
  }
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Thread& lane_thread = first[std::countr_zero(rest)];
    lane_thread.received = serve(first, lanes, lane_thread);
    if (&lane_thread != self) lane_thread.wait = Wait::kNothing;
  }
  return self->received;
}

void run_block(Block& block) {
  running = &block;
  block.next = 0;
  block.stacks_used = 0;
  block.current = nullptr;
  for (Thread& thread : block.threads) thread.wait = Wait::kNothing;
  for (Warp& warp : block.warps) warp.arrived = warp.done = 0;

  std::vector<Thread*> suspended;
  while (block.next < block.order.size()) {
    context::fiber fiber(std::allocator_arg, StackPool(block), start_threads);
    fiber = std::move(fiber).resume();
    if (!fiber) continue;
    block.current->home = std::move(fiber);
    suspended.push_back(block.current);
  }
  while (!suspended.empty()) {
    bool progress = false;
    size_t at_barrier = 0;
    for (Thread*& thread : suspended) {
      if (thread->wait == Wait::kNothing) {
        progress = true;
        block.current = thread;
        context::fiber fiber = std::move(thread->home).resume();
        if (!fiber) {
          thread = nullptr;
          continue;
        }
        thread->home = std::move(fiber);
      }
      at_barrier += thread->wait == Wait::kBlock ? 1 : 0;
    }
    std::erase(suspended, nullptr);
    if (suspended.empty()) break;
    if (at_barrier == suspended.size()) {
      for (Thread* thread : suspended) thread->wait = Wait::kNothing;
    } else if (!progress) {
      fail("deadlock: divergent __syncthreads() or warp collective");
    }
  }
  running = nullptr;
}

}  // namespace

Options& options() {
  static Options instance;
  return instance;
}

const dim3& thread_index() { return running->current->index; }
const dim3& block_index() { return running->index; }
const dim3& block_size() { return running->size; }
const dim3& grid_size() { return running->grid; }
unsigned lane() { return running->current->linear % 32; }
unsigned char* dynamic_shared() { return running->shared; }

void block_barrier() { suspend(Wait::kBlock); }

uint64_t warp_exchange(uint32_t mask, uint64_t value, unsigned source) {
  running->current->given = value;
  running->current->source = source;
  return warp_collective(mask, [](Thread* first, uint32_t lanes, const Thread& to) {
    return (lanes >> to.source & 1u) != 0 ? first[to.source].given : ~uint64_t{0};
  });
}

uint32_t warp_ballot(uint32_t mask, bool value) {
  running->current->given = value ? 1 : 0;
  return static_cast<uint32_t>(warp_collective(mask, [](Thread* first, uint32_t lanes, const Thread&) {
    uint64_t bits = 0;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      bits |= first[l].given << l;
    }
    return bits;
  }));
}

void run_grid(dim3 grid, dim3 size, size_t shared_bytes, const std::function<void()>& kernel) {
  const unsigned threads = size.x * size.y * size.z;
  const size_t blocks = static_cast<size_t>(grid.x) * grid.y * grid.z;
  if (threads == 0 || threads > 1024 || blocks == 0) {
    std::fprintf(stderr, "cuda_shim: cannot launch %zu blocks of %u threads\n", blocks, threads);
    std::abort();
  }
  std::atomic<size_t> next{0};
  const auto run_blocks = [&] {
    Block block;
    block.size = size;
    block.grid = grid;
    block.kernel = &kernel;
    block.threads.resize(threads);
    block.warps.resize((threads + 31) / 32);
    block.order.resize(threads);
    for (unsigned i = 0; i < threads; ++i) {
      block.threads[i].linear = i;
      block.threads[i].index = dim3(i % size.x, i / size.x % size.y, i / (size.x * size.y));
      block.warps[i / 32].exists |= 1u << (i % 32);
    }
    // Exactly the launch's size, so that AddressSanitizer sees an overrun.
    const auto release = [](unsigned char* p) { ::operator delete (p, std::align_val_t{16}); };
    const std::unique_ptr<unsigned char, decltype(release)> shared(
        static_cast<unsigned char*>(::operator new (shared_bytes, std::align_val_t{16})), release);
    block.shared = shared.get();
    for (size_t i; (i = next++) < blocks;) {
      std::memset(block.shared, 0xff, shared_bytes);
      std::iota(block.order.begin(), block.order.end(), 0u);
      if (options().seed != 0) {
        std::shuffle(block.order.begin(), block.order.end(), std::mt19937_64(options().seed + i));
      }
      block.index = dim3(static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                         static_cast<unsigned>(i / (static_cast<size_t>(grid.x) * grid.y)));
      run_block(block);
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < options().os_threads && i < blocks; ++i) helpers.emplace_back(run_blocks);
  run_blocks();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace warmpath::cuda_shim
