#include "router/salt_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/check.h"

namespace warmpath {

namespace {

constexpr size_t kSaltBytes = 16;

Status file_error(const std::string& path, std::string_view what) {
  return failed_precondition(fmt::format("salt file {}: {}: {}", path, what, std::strerror(errno)));
}

Status read_salts(const std::string& path, SaltsByTenant& salts) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : file_error(path, "cannot be read");
  if ((info.st_mode & 0077) != 0) {
    return failed_precondition(fmt::format("salt file {} may be read by others; run: chmod 600 {}", path, path));
  }
  std::ifstream file(path);
  if (!file) return file_error(path, "cannot be opened");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const auto salt =
        space == std::string::npos ? std::nullopt : bytes_from_hex(std::string_view(line).substr(space + 1));
    if (!salt || salt->size() != kSaltBytes) {
      return failed_precondition(
          fmt::format("salt file {} line {}: expected TENANT and 32 hexadecimal digits", path, number));
    }
    salts[line.substr(0, space)] = *salt;
  }
  return {};
}

// Held from reading to replacing, so that two gateways that start together agree on a new tenant's salt.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const int file_;
};

// A disk that fills up takes a part and fails only then.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t taken = write(file, text.data(), text.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) return false;
    text.remove_prefix(static_cast<size_t>(taken));
  }
  return true;
}

Status write_salts(const std::string& path, const SaltsByTenant& salts) {
  std::string text;
  for (const auto& [tenant, salt] : salts) text += fmt::format("{} {}\n", tenant, bytes_to_hex(salt));
  const std::string fresh = path + ".new";
  const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return file_error(fresh, "cannot be created");
  const bool written = write_all(file, text) && fsync(file) == 0;
  Status status = written ? Status() : file_error(fresh, "cannot be written");
  if (close(file) != 0 && status.ok()) status = file_error(fresh, "cannot be written");
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0) status = file_error(path, "cannot be replaced");
  if (!status.ok()) unlink(fresh.c_str());
  return status;
}

}  // namespace

Result<SaltsByTenant> load_or_create_salts(const std::string& path, const std::vector<std::string>& tenants) {
  SaltsByTenant salts;
  // What needs no change needs no lock, nor a folder that can be written.
  WARMPATH_RETURN_IF_ERROR(read_salts(path, salts));
  if (std::all_of(tenants.begin(), tenants.end(), [&](const std::string& tenant) { return salts.contains(tenant); })) {
    return salts;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  const FileLock lock(path);
  WARMPATH_RETURN_IF_ERROR(read_salts(path, salts));
  bool added = false;
  for (const std::string& tenant : tenants) {
    if (salts.contains(tenant)) continue;
    salts[tenant] = random_bytes(kSaltBytes);
    added = true;
  }
  if (added) WARMPATH_RETURN_IF_ERROR(write_salts(path, salts));
  return salts;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = getrandom(bytes.data() + filled, count - filled, 0);
    WARMPATH_CHECK(got > 0 || errno == EINTR, "the kernel gives no random bytes");
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return bytes;
}

std::string bytes_to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    hex += kDigits[static_cast<uint8_t>(byte) >> 4];
    hex += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return hex;
}

std::optional<std::string> bytes_from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < hex.size(); at += 2) {
    const int high = digit(hex[at]);
    const int low = digit(hex[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace warmpath
