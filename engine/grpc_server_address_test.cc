#include "engine/grpc_server_address.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace warmpath {
namespace {

using testing::HasSubstr;
using Kind = ListenAddress::Kind;

TEST(ListenAddress, ParsesWhatPeopleWrite) {
  const std::vector<std::tuple<std::string, Kind, std::string>> cases{
      {"unix:/run/w.sock", Kind::kUnix, "unix:/run/w.sock"},
      {"unix:///run/w.sock", Kind::kUnix, "unix:/run/w.sock"},
      {"unix:w.sock", Kind::kUnix, "unix:w.sock"},
      {"127.0.0.1:0", Kind::kLoopback, "127.0.0.1:0"},
      {"127.9.0.1:80", Kind::kLoopback, "127.9.0.1:80"},
      {"localhost:80", Kind::kLoopback, "localhost:80"},
      {"[::1]:80", Kind::kLoopback, "[::1]:80"},
      {"0.0.0.0:80", Kind::kRemote, "0.0.0.0:80"},
      {"[::]:80", Kind::kRemote, "[::]:80"},
      {"10.1.2.3:65535", Kind::kRemote, "10.1.2.3:65535"}};
  for (const auto& [text, kind, canonical] : cases) {
    const Result<ListenAddress> address = parse_listen_address(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->kind, kind) << text;
    EXPECT_EQ(to_string(*address), canonical);
  }
  for (const char* text : {"", "unix:", "7001", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:80", "host:80",
                           ":80", "127.0.0.1:80 ", "127.0.0.1:-1"}) {
    EXPECT_FALSE(parse_listen_address(text).ok()) << text;
  }
}

TEST(ListenAddress, TcpNeedsATokenAndTheNetworkAFlag) {
  const auto check = [](const char* text, bool has_token, bool allow_remote) {
    return check_listen_address(*parse_listen_address(text), has_token, allow_remote);
  };
  EXPECT_TRUE(check("unix:/a", false, false).ok());
  EXPECT_THAT(check("127.0.0.1:1", false, false).message(), HasSubstr("--token-file"));
  EXPECT_TRUE(check("127.0.0.1:1", true, false).ok());
  EXPECT_THAT(check("0.0.0.0:1", true, false).message(), HasSubstr("--allow-remote"));
  EXPECT_FALSE(check("0.0.0.0:1", false, true).ok());
  EXPECT_TRUE(check("0.0.0.0:1", true, true).ok());
}

class UnixSocket : public testing::Test {
 protected:
  UnixSocket() {
    char pattern[] = "/tmp/warmpath_socket_XXXXXX";
    folder_ = mkdtemp(pattern);
    path_ = folder_ + "/s";
  }
  ~UnixSocket() override { std::filesystem::remove_all(folder_); }

  int listen_there() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(UnixSocket, AStaleOneIsRemovedALiveOneIsNot) {
  EXPECT_TRUE(claim_unix_socket(path_).ok());  // nothing there
  const int fd = listen_there();
  EXPECT_THAT(claim_unix_socket(path_).message(), HasSubstr("another process listens"));
  EXPECT_TRUE(std::filesystem::exists(path_));
  close(fd);
  EXPECT_TRUE(claim_unix_socket(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocket, OtherFilesAndImpossiblePathsAreRefused) {
  close(open(path_.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_THAT(claim_unix_socket(path_).message(), HasSubstr("is no socket"));
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_THAT(claim_unix_socket(folder_ + "/none/s").message(), HasSubstr("does not exist"));
  EXPECT_THAT(claim_unix_socket(folder_ + "/" + std::string(200, 'x')).message(), HasSubstr("shorter"));
}

}  // namespace
}  // namespace warmpath
