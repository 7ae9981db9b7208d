// The documentation and the programs agree: generated pages are current, links lead somewhere, every command explains
// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace warmpath {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Output {
  std::string text;
  int code = -1;
};

Output run(const std::string& command) {
  Output output;
  std::FILE* pipe = popen((std::string(WARMPATH_BINARY_DIR) + "/bin/" + command + " 2>&1").c_str(), "r");
  char chunk[4096];
  for (size_t got; (got = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;) output.text.append(chunk, got);
  output.code = WEXITSTATUS(pclose(pipe));
  return output;
}

TEST(Docs, ConfigurationIsWhatTheCodeSays) {
  const bool current = read(fs::path(WARMPATH_SOURCE_DIR) / "docs/configuration.md") ==
                       run("warmpath gateway --print-config-reference").text;
  EXPECT_TRUE(current) << "write it anew: warmpath gateway --print-config-reference > docs/configuration.md";
}

TEST(Docs, LinksLeadToFiles) {
  const std::regex link(R"(\]\(([^)#:]+)\))");
  std::vector<fs::path> pages{fs::path(WARMPATH_SOURCE_DIR) / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(WARMPATH_SOURCE_DIR) / "docs")) {
    if (entry.is_regular_file()) pages.push_back(entry.path());
  }
  int links = 0;
  for (const fs::path& page : pages) {
    const std::string text = read(page);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match, ++links) {
      EXPECT_TRUE(fs::exists(page.parent_path() / (*match)[1].str())) << page << " links to " << (*match)[1];
    }
  }
  EXPECT_GT(links, 10);
}

TEST(Programs, ExplainThemselves) {
  for (const char* command : {"warmpath", "warmpath up", "warmpath gateway", "warmpath mock-replica", "warmpath models",
                              "warmpath models pull", "warmpath tokenize", "warmpath render", "warmpath keys",
                              "warmpath keys add", "warmpath doctor", "warmpath-engine"}) {
    const Output help = run(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_GT(help.text.size(), 100u) << command;
  }
  for (const char* command : {"warmpath", "warmpath up", "warmpath tokenize", "warmpath-engine"}) {
    const Output version = run(std::string(command) + " --version");
    EXPECT_EQ(version.code, 0) << command;
    EXPECT_NE(version.text.find("0.1.0"), std::string::npos) << version.text;
  }
}

TEST(Programs, SayWhatIsWrongWithAFile) {
  const fs::path file = fs::temp_directory_path() / ("warmpath-docs-test-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file)
      << "listen: 127.0.0.1:0\nmodels:\n  - name: m\n    polcy: random\n    endpoints: [\"unix:/tmp/x\"]\n";
  const Output check = run("warmpath gateway --check " + file.string());
  EXPECT_EQ(check.code, 1);
  EXPECT_NE(check.text.find(":4:5"), std::string::npos) << check.text;
  EXPECT_NE(check.text.find("policy"), std::string::npos) << "the nearest valid word: " << check.text;
  std::ofstream(file) << "listen: 0.0.0.0:8080\nmodels:\n  - name: m\n    endpoints: [\"unix:/tmp/x\"]\n";
  EXPECT_EQ(run("warmpath gateway --check " + file.string()).code, 1) << "listening to strangers without keys";
  EXPECT_EQ(run("warmpath gateway --insecure-no-auth --check " + file.string()).code, 0);
  const std::string model = "listen: 127.0.0.1:8080\nmodels:\n  - name: m\n    endpoints: ";
  for (const char* wrong : {"[foo]", "[\"http://a:1\"]", "[\"127.0.0.1:99999\"]", "[\"unix:\"]", "[\"unix:a.sock\"]"}) {
    std::ofstream(file) << model << wrong << "\n";
    EXPECT_EQ(run("warmpath gateway --check " + file.string()).code, 1) << wrong;
  }
  for (const char* wrong : {"auth: {keys: /nonexistent}", "admin: 127.0.0.1:8080"}) {
    std::ofstream(file) << wrong << "\n" << model << "[\"unix:/tmp/x\"]\n";
    EXPECT_EQ(run("warmpath gateway --check " + file.string()).code, 1) << wrong;
  }
  fs::remove(file);
}

TEST(Programs, AWrongCommandLineIsExplainedAndEndsWith2) {
  const std::pair<const char*, const char*> rows[] = {
      {"warmpath upp", "did you mean up?"},
      {"warmpath up --replcas 2", "unknown argument '--replcas'; did you mean --replicas?"},
      {"warmpath up --replicas 0", "--replicas"},
      {"warmpath up --port x", "--port"},
      {"warmpath up --policy predicted_second", "did you mean \"predicted_seconds\"?"},
      {"warmpath up --kv-bytes lots", "--kv-bytes: 'lots' is not a size"},
      {"warmpath up --host 0.0.0.0", "can be reached from other machines"},
      {"warmpath up --host example.org", "is no IP address"},
      {"warmpath up --port 7001 --admin-port 7001", "each listener needs its own"},
      {"warmpath gateway", "`warmpath gateway --help` shows how it is used"},
      {"warmpath keys add", "`warmpath keys add --help` shows"},
      {"warmpath keys add 'a b' --file /tmp/x", "is not a tenant's name"},
      {"warmpath-engine --model synthetic:llama-2x64", "--listen"},
      {"warmpath-engine --model synthetic:llama-2x64 --listen unix:/tmp/x --kv-byte 1", "did you mean --kv-bytes?"},
  };
  for (const auto& [command, expected] : rows) {
    const Output output = run(command);
    EXPECT_EQ(output.code, 2) << command << "\n" << output.text;
    EXPECT_NE(output.text.find(expected), std::string::npos) << command << "\n" << output.text;
    EXPECT_NE(output.text.find("--help` shows how it is used"), std::string::npos) << command << "\n" << output.text;
  }
  for (const char* command : {"warmpath up --model /nonexistent.gguf", "warmpath up --keys-file /nonexistent",
                              "warmpath up --model synthetic:llama-2x64,context=1024 --context 4096",
                              "warmpath gateway --config /nonexistent", "warmpath render /nonexistent"}) {
    const Output output = run(command);
    EXPECT_EQ(output.code, 1) << command << "\n" << output.text;
  }
}

TEST(Programs, RenderSaysWhatIsWrongWithAConversation) {
  const std::pair<const char*, const char*> rows[] = {
      {"hello", ".json: not valid JSON"},
      {R"(["x"])", ".json: this is no JSON object; write a conversation as {"},
      {R"({"messages": ["x"]})", "'messages[0]' must be an object"},
      {R"({"messages": [{"content": "x"}]})", "'messages[0].role' must be a string"},
      {R"({"messages": [{"role": "user", "content": "x"}], "tools": [{}]})", "'tools[0]' must be an object, such as {"},
  };
  const fs::path file = fs::temp_directory_path() / ("warmpath-docs-test-" + std::to_string(getpid()) + ".json");
  for (const auto& [json, expected] : rows) {
    std::ofstream(file) << json;
    const Output output = run("warmpath render --model synthetic:llama-2x64 " + file.string());
    EXPECT_EQ(output.code, 1) << json;
    EXPECT_NE(output.text.find(expected), std::string::npos) << json << "\n" << output.text;
  }
  fs::remove(file);
}

TEST(Programs, DoctorLooksWhetherItCanWrite) {
  const std::string env = "env -u XDG_CACHE_HOME -u XDG_RUNTIME_DIR ";
  const auto doctor = [&](const std::string& variables) {
    std::FILE* pipe = popen((env + variables + " " WARMPATH_BINARY_DIR "/bin/warmpath doctor 2>&1").c_str(), "r");
    Output output;
    char chunk[4096];
    for (size_t got; (got = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;) output.text.append(chunk, got);
    output.code = WEXITSTATUS(pclose(pipe));
    return output;
  };
  const Output nowhere = doctor("HOME=/proc/nowhere TMPDIR=/proc");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.text.find("/proc cannot be written"), std::string::npos) << nowhere.text;
  EXPECT_NE(nowhere.text.find("set XDG_CACHE_HOME"), std::string::npos) << nowhere.text;
  EXPECT_NE(nowhere.text.find("/tmp can be written"), std::string::npos) << "the next one is taken: " << nowhere.text;
}

TEST(Programs, UpShowsTheCacheAtWorkAndStops) {
  const Output up = run("warmpath up --once --port 0 --admin-port 0 --model synthetic:llama-2x64,context=16384");
  EXPECT_EQ(up.code, 0) << up.text;
  EXPECT_NE(up.text.find("The second found the shared prefix"), std::string::npos) << up.text;
  EXPECT_NE(up.text.find("SYNTHETIC"), std::string::npos) << "random weights must be called so: " << up.text;
}

TEST(Programs, AKeyIsAddedOnALineOfItsOwn) {
  const fs::path file = fs::temp_directory_path() / ("warmpath-docs-test-" + std::to_string(getpid()) + ".keys");
  EXPECT_EQ(run("warmpath keys add alice --file " + file.string()).code, 0);
  std::string text = read(file);
  text.pop_back();
  std::ofstream(file) << text;  // without its last line end
  EXPECT_EQ(run("warmpath keys add bob --file " + file.string()).code, 0);
  EXPECT_NE(read(file).find(text + "\nbob:"), std::string::npos) << read(file);
  std::ofstream(file) << "not a key file\n";
  EXPECT_EQ(run("warmpath keys add carol --file " + file.string()).code, 1);
  EXPECT_EQ(read(file), "not a key file\n");
  fs::remove(file);
}

TEST(Programs, TokenizeGoesBothWaysAndRenderShowsThePrompt) {
  const fs::path file = fs::temp_directory_path() / ("warmpath-docs-test-" + std::to_string(getpid()) + ".txt");
  const std::string text = "Round trip: \xc3\xa9\xe2\x82\xac <|im_end|>\n";
  std::ofstream(file) << text;
  const std::string model = "--model synthetic:llama-2x64 ";
  const Output ids = run("warmpath tokenize " + model + file.string() + " | head -1 > " + file.string() + ".ids; " +
                         WARMPATH_BINARY_DIR + "/bin/warmpath tokenize --detokenize " + model + file.string() + ".ids");
  EXPECT_EQ(ids.text.substr(ids.text.size() - std::min(ids.text.size(), text.size())), text);
  std::ofstream(file) << R"({"messages": [{"role": "user", "content": "hello"}]})";
  const Output prompt = run("warmpath render " + model + file.string());
  EXPECT_EQ(prompt.code, 0) << prompt.text;
  EXPECT_NE(prompt.text.find("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"), std::string::npos)
      << prompt.text;
  fs::remove(file);
  fs::remove(file.string() + ".ids");
}

}  // namespace
}  // namespace warmpath
