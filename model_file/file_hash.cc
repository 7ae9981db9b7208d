#include "model_file/file_hash.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "model_file/model_store.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSettledNanoseconds = 2'000'000'000;

// "1 DEVICE INODE SIZE CONTENT_NS INODE_NS": the state that a hash belongs to, and the entry's version.
std::string state_of(const FileIdentity& identity) {
  return fmt::format("1 {} {} {} {} {}", identity.device, identity.inode, identity.bytes, identity.content_ns,
                     identity.inode_ns);
}

std::optional<fs::path> entry_path(const FileIdentity& identity) {
  const Result<fs::path> store = model_store_path();
  if (!store.ok()) return std::nullopt;
  return store->parent_path() / "hashes" / fmt::format("{}-{}", identity.device, identity.inode);
}

std::optional<Hash128> remembered(const fs::path& path, const std::string& state) {
  std::ifstream in(path);
  std::string line;
  std::string hash;
  if (!std::getline(in, line) || line != state || !std::getline(in, hash)) return std::nullopt;
  return hash128_from_hex(hash);
}

void remember(const fs::path& path, const std::string& state, Hash128 hash) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + fmt::format(".{}.tmp", getpid());
  {
    std::ofstream out(temporary);
    out << state << '\n' << to_hex(hash) << '\n';
    if (!out.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, path, error);
  if (error) {
    fs::remove(temporary, error);
    log_debug("hash_not_remembered", {{"path", path.string()}});
  }
}

// hash128() of the whole file, without keeping all of it in the process's memory.
Hash128 hash_in_pieces(const MappedFile& file) {
  constexpr size_t kPiece = size_t{4} << 20;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  const auto bytes = file.bytes();
  if (state == nullptr || XXH3_128bits_reset(state.get()) != XXH_OK) return hash128(bytes.data(), bytes.size());
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    XXH3_128bits_update(state.get(), bytes.data() + at, std::min(kPiece, bytes.size() - at));
    file.drop_pages();
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
  return {digest.high64, digest.low64};
}

}  // namespace

Hash128 file_hash(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() < kRememberedHashBytes) return hash128(bytes.data(), bytes.size());
  const FileIdentity& identity = file.identity();
  const std::string state = state_of(identity);
  const std::optional<fs::path> path = entry_path(identity);
  if (path) {
    if (const auto hash = remembered(*path, state)) return *hash;
  }
  const int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto start = std::chrono::steady_clock::now();
  const Hash128 hash = hash_in_pieces(file);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (seconds > 1) log_info("model_file_hashed", {{"bytes", bytes.size()}, {"seconds", seconds}});
  const int64_t changed = std::max(identity.content_ns, identity.inode_ns);
  if (path && now - changed > kSettledNanoseconds) remember(*path, state, hash);
  return hash;
}

}  // namespace warmpath
