#include "router/index_snapshot_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/log.h"

namespace warmpath {

namespace {

int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  const int number_;
};

Status write_error(const std::string& path) {
  return unavailable(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

Status write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return write_error(path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

void save_index(const SharedIndex& index, std::vector<SnapshotReplica> replicas, const Clock& clock,
                const std::function<bool(std::string)>& take) {
  SnapshotProgress progress;
  progress.replicas = std::move(replicas);
  progress.saved_at_ns = wall_ns();
  for (bool more = true; more;) {
    std::string piece;
    more = index.read([&](const RadixIndex& inner) { return inner.save_piece(progress, clock.now_ns(), piece); });
    if (!take(std::move(piece))) return;
  }
}

IndexSnapshotFile::IndexSnapshotFile(std::string path, double every_s, std::shared_ptr<SharedIndex> index,
                                     const Clock& clock)
    : path_(std::move(path)), every_s_(every_s), index_(std::move(index)), clock_(clock) {}

IndexSnapshotFile::~IndexSnapshotFile() = default;

void IndexSnapshotFile::load(const std::vector<SnapshotReplica>& replicas) {
  if (path_.empty()) return;
  const auto refuse = [&](const std::string& why) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    log_warn("index_snapshot_refused", {{"file", path_}, {"why", why}});
  };
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno != ENOENT) refuse(std::strerror(errno));
    return;
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
    refuse("it is not a file with anything in it");
    return;
  }
  const auto size = static_cast<size_t>(about.st_size);
  // Private and read once from front to back. Nobody writes to it: a new one is another file.
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.get(), 0);
  if (mapped == MAP_FAILED) {
    refuse(std::strerror(errno));
    return;
  }
  const auto begun = std::chrono::steady_clock::now();
  const Result<IndexSnapshot> parsed = IndexSnapshot::parse({static_cast<const char*>(mapped), size});
  if (!parsed.ok()) {
    refuse(parsed.status().message());
  } else {
    // A clock that was set back must not make placements younger.
    const double age_s = std::max(0.0, static_cast<double>(wall_ns() - parsed->saved_at_ns()) * 1e-9);
    const uint64_t blocks =
        index_->write([&](RadixIndex& index) { return index.restore(*parsed, replicas, age_s, clock_.now_ns()); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    log_info("index_restored",
             {{"file", path_}, {"holder_blocks", blocks}, {"age_s", age_s}, {"seconds", took.count()}});
  }
  ::munmap(mapped, size);
}

void IndexSnapshotFile::start(Replicas replicas) {
  if (path_.empty()) return;
  replicas_ = std::move(replicas);
  queue_ = std::make_unique<TaskQueue>("wp-snapshot", 1);
  save_later();
}

void IndexSnapshotFile::save_later() {
  if (every_s_ <= 0) return;
  queue_->post_after(every_s_, [this] {
    save_and_log();
    save_later();
  });
}

void IndexSnapshotFile::stop() {
  if (!queue_) return;
  queue_->stop();
  queue_ = nullptr;
  save_and_log();
}

void IndexSnapshotFile::save_and_log() {
  const Status saved = save(replicas_());
  if (!saved.ok()) log_warn("index_snapshot_failed", {{"file", path_}, {"why", saved.message()}});
}

Status IndexSnapshotFile::save(std::vector<SnapshotReplica> replicas) {
  const std::string temporary = path_ + ".new";
  const Status saved = [&]() -> Status {
    // Identities of prompts are nobody else's business.
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.get() < 0) return write_error(temporary);
    Status written;
    save_index(*index_, std::move(replicas), clock_, [&](const std::string& piece) {
      written = write_all(file.get(), piece, temporary);
      return written.ok();
    });
    WARMPATH_RETURN_IF_ERROR(written);
    if (::fsync(file.get()) != 0) return write_error(temporary);
    if (::rename(temporary.c_str(), path_.c_str()) != 0) return write_error(path_);
    return {};
  }();
  if (saved.ok()) {
    saved_at_s_.store(wall_ns() / 1'000'000'000, std::memory_order_relaxed);
  } else {
    failures_.fetch_add(1, std::memory_order_relaxed);
    ::unlink(temporary.c_str());
  }
  return saved;
}

}  // namespace warmpath
