// Keys, tenants, salts, receipts; and changing them while requests run.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/block_chain.h"
#include "router/gateway_fixture.h"
#include "router/salt_file.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TenantsTest : public GatewayFixture {
 protected:
  void SetUp() override {
    GatewayFixture::SetUp();
    folder_ =
        std::filesystem::temp_directory_path() / ("warmpath-tenants-" + std::to_string(getpid()) + "-" +
                                                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    config_.auth.keys = folder_ / "keys";
    write_keys(
        {key_file_line("red", "key-red"), key_file_line("blue", "key-blue"), key_file_line("ops", "key-ops", true)});
  }
  void TearDown() override {
    GatewayFixture::TearDown();
    std::filesystem::remove_all(folder_);
  }
  void write_keys(const std::vector<std::string>& lines) {
    std::ofstream file(folder_ / "keys");
    file << "# tenants\n\n";
    for (const std::string& line : lines) file << line << "   # comment\n";
  }
  static HttpHeaders bearer(const std::string& key) { return {{"Authorization", "Bearer " + key}}; }
  std::string salt_sent() {
    const auto call = last_call();
    return call ? call->request().salt : "none";
  }
  std::shared_ptr<TestCall> last_call() {
    const size_t a = a_->calls();
    const size_t b = b_->calls();
    // Round robin over one replica in these tests.
    return a > 0 ? a_->call(a - 1) : b_->call(b - 1);
  }

  std::filesystem::path folder_;
};

TEST_F(TenantsTest, AKeyIsNeeded) {
  start();
  reply_always("x");
  const SeenAnswer none = ask("POST", kChatPath, chat("hi"));
  EXPECT_EQ(none.status, 401);
  EXPECT_THAT(none.header("www-authenticate"), HasSubstr("Bearer"));
  EXPECT_THAT(none.body, HasSubstr(R"("code":"invalid_api_key")"));
  EXPECT_EQ(ask("POST", kChatPath, chat("hi"), bearer("key-green")).status, 401);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi"), {{"authorization", "Basic key-red"}}).status, 401);
  EXPECT_EQ(ask("GET", "/v1/models").status, 401);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi"), bearer("key-red")).status, 200);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi"), {{"X-Api-Key", "key-blue"}}).status, 200);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi"), {{"authorization", "bearer  key-red "}}).status, 200);
}

TEST_F(TenantsTest, TenantsShareNoBlocks) {
  config_.models[0].endpoints = {{"a", ""}};
  config_.models[0].policy.name = "predicted_seconds";
  start();
  reply_always("x");
  const std::string body = chat(std::string(400, 'q'));
  ask("POST", kChatPath, body, bearer("key-red"));
  const std::string red = salt_sent();
  EXPECT_EQ(red.size(), 16u);
  const SeenAnswer blue_answer = ask("POST", kChatPath, body, bearer("key-blue"));
  EXPECT_NE(salt_sent(), red);
  EXPECT_EQ(blue_answer.header("x-warmpath-predicted-cached-tokens"), "0");
  const SeenAnswer red_again = ask("POST", kChatPath, body, bearer("key-red"));
  EXPECT_EQ(salt_sent(), red);
  EXPECT_GE(std::stoi(red_again.header("x-warmpath-predicted-cached-tokens")), 400);
  EXPECT_NE(chain_root({1, 2}, red, ""), chain_root({1, 2}, "", ""));
}

TEST_F(TenantsTest, SaltsOutliveARestartAndAreKeptFromOthers) {
  const auto first = Auth::load(config_.auth.keys, folder_ / "salts");
  ASSERT_TRUE(first.ok()) << first.status().message();
  write_keys({key_file_line("red", "key-red"), key_file_line("red", "second-key"), key_file_line("new", "key-new")});
  const auto second = Auth::load(config_.auth.keys, folder_ / "salts");
  ASSERT_TRUE(second.ok());
  const auto salt = [](const std::shared_ptr<const Auth>& auth, const char* key) {
    return auth->identify_key(key)->tenant->salt;
  };
  EXPECT_EQ(salt(*first, "key-red"), salt(*second, "key-red"));
  EXPECT_EQ(salt(*second, "key-red"), salt(*second, "second-key"));
  EXPECT_NE(salt(*second, "key-red"), salt(*second, "key-new"));
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "salts").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  chmod((folder_ / "salts").c_str(), 0644);
  EXPECT_FALSE(Auth::load(config_.auth.keys, folder_ / "salts").ok());
}

TEST_F(TenantsTest, ABrokenKeyFileIsToldWithoutItsText) {
  for (const char* line : {"plain-secret", "red:1234", "red:zz", "sp ace:00", ":00"}) {
    write_keys({line});
    const auto auth = Auth::load(config_.auth.keys, folder_ / "salts");
    ASSERT_FALSE(auth.ok()) << line;
    EXPECT_THAT(auth.status().message(), HasSubstr("line 3"));
    EXPECT_THAT(auth.status().message(), Not(HasSubstr("plain-secret")));
  }
  write_keys({});
  EXPECT_FALSE(Auth::load(config_.auth.keys, folder_ / "salts").ok());
}

TEST_F(TenantsTest, RandomKeysAreLongAndDiffer) {
  const std::string key = random_key();
  EXPECT_EQ(key.size(), 46u);
  EXPECT_NE(key, random_key());
  EXPECT_THAT(key_file_line("t", "abc"), HasSubstr("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

TEST_F(TenantsTest, ReceiptsAreATenantsOwn) {
  start();
  reply_always("x", 8);
  ask("POST", kChatPath, chat("secret words"), {{"authorization", "Bearer key-red"}, {"x-request-id", "r-1"}});
  ask("POST", kChatPath, chat("hi"), {{"authorization", "Bearer key-blue"}, {"x-request-id", "b-1"}});
  EXPECT_EQ(ask_admin("/receipts").status, 401);
  const SeenAnswer red = ask_admin("/receipts", bearer("key-red"));
  EXPECT_THAT(red.body, HasSubstr("r-1"));
  EXPECT_THAT(red.body, Not(HasSubstr("b-1")));
  EXPECT_THAT(red.body, HasSubstr(R"("delivered_cached_tokens":8)"));
  EXPECT_THAT(red.body, HasSubstr(R"("candidates":[{)"));
  EXPECT_THAT(red.body, Not(HasSubstr("secret words")));
  EXPECT_EQ(ask_admin("/receipts?tenant=blue", bearer("key-red")).status, 403);
  const SeenAnswer all = ask_admin("/receipts", bearer("key-ops"));
  EXPECT_THAT(all.body, HasSubstr("r-1"));
  EXPECT_THAT(all.body, HasSubstr("b-1"));
  const SeenAnswer one = ask_admin("/receipts?tenant=blue&limit=5", bearer("key-ops"));
  EXPECT_THAT(one.body, Not(HasSubstr("r-1")));
  EXPECT_EQ(ask_admin("/receipts?limit=x", bearer("key-ops")).status, 400);
}

TEST_F(TenantsTest, MetricsSayWhatHappened) {
  start();
  reply_always("x", 8);
  ask("POST", kChatPath, chat("hi"), bearer("key-red"));
  const std::string text = ask_admin("/metrics").body;
  EXPECT_THAT(text, HasSubstr(R"(warmpath_requests_total{model="m",status="200",wire="chat"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(warmpath_delivered_cached_tokens_total{model="m"} 8)"));
  EXPECT_THAT(text, HasSubstr(R"(warmpath_replica_ready{model="m",replica="a"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(warmpath_replica_exact{model="m",replica="b"} 1)"));
  EXPECT_THAT(text, Not(HasSubstr("\"red\"")));
}

TEST_F(TenantsTest, EveryMetricIsDocumented) {
  std::ifstream file(std::string(WARMPATH_SOURCE_DIR) + "/docs/metrics.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t documented = 0;
  for (const std::string& name : Metrics().names()) {
    EXPECT_THAT(page, HasSubstr("`" + name + "`"));
    ++documented;
  }
  EXPECT_GT(documented, 30u);
  // And nothing is documented that does not exist.
  for (size_t at = page.find("`warmpath_"); at != std::string::npos; at = page.find("`warmpath_", at + 1)) {
    const std::string name = page.substr(at + 1, page.find('`', at + 1) - at - 1);
    EXPECT_THAT(Metrics().names(), ::testing::Contains(name));
  }
}

TEST_F(TenantsTest, AReloadChangesKeysAndModels) {
  start();
  reply_always("x");
  EXPECT_EQ(ask("GET", "/v1/models", "", bearer("key-new")).status, 401);
  write_keys({key_file_line("new", "key-new")});
  config_.models[0].aliases.push_back("fresh-name");
  config_.models[0].endpoints = {{"b", ""}};
  config_.listen = "127.0.0.1:1";
  const auto notes = core_->reload(config_);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  EXPECT_THAT(*notes, ::testing::ElementsAre("listen"));
  EXPECT_EQ(ask("GET", "/v1/models", "", bearer("key-red")).status, 401);
  EXPECT_EQ(ask("GET", "/v1/models/fresh-name", "", bearer("key-new")).status, 200);
  const size_t a_before = a_->calls();
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(ask("POST", kChatPath, chat("hi"), bearer("key-new")).header("x-warmpath-replica"), "b");
  }
  EXPECT_EQ(a_->calls(), a_before);
}

TEST_F(TenantsTest, KeyFilesFromAnyEditorAreReadAndContradictionsAreNot) {
  const std::string red = key_file_line("red", "key-red"), blue = key_file_line("blue", "key-blue");
  std::ofstream(config_.auth.keys) << "\xef\xbb\xbf" + red + "\r\n\r\n  " + blue + "\t# of 2026\r\n" + red;
  const auto auth = Auth::load(config_.auth.keys, folder_ / "salts");
  ASSERT_TRUE(auth.ok()) << auth.status().message();
  EXPECT_EQ((*auth)->keys(), 2u);
  EXPECT_EQ((*auth)->identify_key("key-red")->tenant->name, "red");
  for (const std::string& other : {key_file_line("green", "key-red"), red + ":admin"}) {
    write_keys({red, blue, other});
    const auto refused = Auth::load(config_.auth.keys, folder_ / "salts");
    EXPECT_THAT(refused.status().message(), HasSubstr("line 5: this key stands further up")) << other;
  }
}

TEST_F(TenantsTest, GatewaysThatStartTogetherAgreeOnNewSalts) {
  const std::string path = folder_ / "shared.salts";
  std::vector<std::thread> starting;
  std::vector<SaltsByTenant> got(8);
  for (size_t gateway = 0; gateway < got.size(); ++gateway) {
    starting.emplace_back([&, gateway] {
      auto salts = load_or_create_salts(path, {"red", "t" + std::to_string(gateway)});
      ASSERT_TRUE(salts.ok()) << salts.status().message();
      got[gateway] = *std::move(salts);
    });
  }
  for (std::thread& thread : starting) thread.join();
  for (const SaltsByTenant& salts : got) EXPECT_EQ(salts.at("red"), got[0].at("red"));
  const auto after = load_or_create_salts(path, {"red"});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->size(), 9u) << "nobody's salt was lost";
}

TEST_F(TenantsTest, AFullDiskLeavesTheOldSaltsAndSaysWhy) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::string path = folder_ / "full.salts";
  const auto before = load_or_create_salts(path, {"red"});
  ASSERT_TRUE(before.ok());
  std::filesystem::create_symlink("/dev/full", path + ".new");
  const auto refused = load_or_create_salts(path, {"red", "blue"});
  EXPECT_THAT(refused.status().message(), HasSubstr("No space left on device"));
  const auto after = load_or_create_salts(path, {"red"});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(*after, *before);
}

TEST_F(TenantsTest, ARefusedReloadChangesNothing) {
  start();
  reply_always("x");
  GatewayConfig broken = config_;
  broken.models[0].aliases.push_back("never");
  broken.models[0].endpoints.push_back({"no-such-endpoint", ""});
  EXPECT_FALSE(core_->reload(broken).ok());
  broken = config_;
  broken.auth.keys = folder_ / "missing";
  EXPECT_FALSE(core_->reload(broken).ok());
  EXPECT_EQ(ask("GET", "/v1/models/never", "", bearer("key-red")).status, 404);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi"), bearer("key-red")).status, 200);
}

}  // namespace
}  // namespace warmpath
