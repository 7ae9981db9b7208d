// ParseTask: a coroutine that reads part of an answer, and waits inside co_await while the model has not yet written
// the next byte; its result is whether what it was to read was there. Tasks call each other with co_await; the reader
// (AnswerReader::run) resumes the innermost one in a loop, so nesting and loops cost no stack.
//
// A task must be awaited by the expression that makes it, and takes only references that outlive it.
// Thread safety: none; all tasks of one answer belong together.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace warmpath {

// Who runs next.
struct ParseSchedule {
  std::coroutine_handle<> current;
  bool waits_for_input = false;
};

class [[nodiscard]] ParseTask {
 public:
  struct promise_type {
    // The first parameter of every task leads to the schedule.
    template <typename Reader, typename... More>
    explicit promise_type(Reader& reader, More&&...) : schedule(reader.schedule()) {}

    ParseTask get_return_object() { return ParseTask(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        self.promise().schedule.current = self.promise().caller;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_value(bool read) { result = read; }
    void unhandled_exception() { failure = std::current_exception(); }

    ParseSchedule& schedule;
    std::coroutine_handle<> caller;
    bool result = false;
    std::exception_ptr failure;
  };

  ParseTask(ParseTask&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  ParseTask& operator=(ParseTask&&) = delete;
  ~ParseTask() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) noexcept {
    handle_.promise().caller = caller;
    handle_.promise().schedule.current = handle_;
  }
  bool await_resume() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
    return handle_.promise().result;
  }

  // The outermost task begins.
  void start() { handle_.promise().schedule.current = handle_; }

 private:
  explicit ParseTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace warmpath
