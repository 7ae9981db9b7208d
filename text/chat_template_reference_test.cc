// Every template x conversation of the shared model data against Jinja2's own rendering (testdata/rendered.tsv, written
// by reference/render_digests.py): the same bytes, or a refusal on both sides. Templates that change their own lists,
// which transformers' sandbox forbids, are compared with a sandbox that allows it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/hash128.h"
#include "text/chat_template.h"

namespace warmpath {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

TEST(ChatTemplateReference, EveryTemplateAndConversationRendersAsJinja2Does) {
  const std::filesystem::path data = std::filesystem::path(WARMPATH_SOURCE_DIR) / "../shared/model_data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no model data at " << data;
  std::ifstream rows(std::filesystem::path(WARMPATH_SOURCE_DIR) / "text/testdata/rendered.tsv");
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates;
  int equal = 0;
  int refused = 0;
  int beyond = 0;
  for (std::string row; std::getline(rows, row);) {
    std::istringstream fields(row);
    std::string name, conversation_name, outcome;
    std::getline(fields, name, '\t');
    std::getline(fields, conversation_name, '\t');
    std::getline(fields, outcome, '\t');
    const auto source_path = data / "chat_templates" / name;
    if (!std::filesystem::exists(source_path)) continue;
    auto& compiled = templates[name];
    if (!compiled) {
      auto result = ChatTemplate::compile(read_file(source_path), "<|bos|>", "<|eos|>");
      ASSERT_TRUE(result.ok()) << name << ": " << result.status().message();
      compiled = *result;
    }
    auto conversation = conversation_from_json(read_file(data / "conversations" / conversation_name));
    ASSERT_TRUE(conversation.ok()) << conversation.status().message();
    if (!conversation->now) {
      using namespace std::chrono;
      conversation->now = sys_days(year(2026) / 1 / 2) + hours(3) + minutes(4) + seconds(5);
    }
    const auto text = compiled->render(*conversation);
    SCOPED_TRACE(name + " x " + conversation_name);
    if (outcome.starts_with("refused")) {
      EXPECT_FALSE(text.ok()) << "the reference: " << outcome;
      ++refused;
      continue;
    }
    ASSERT_TRUE(text.ok()) << text.status().message();
    const bool unbanned = outcome.starts_with("unbanned ");
    EXPECT_EQ(to_hex(hash128(text->to_string())), unbanned ? outcome.substr(9) : outcome);
    ++(unbanned ? beyond : equal);
  }
  EXPECT_GT(equal, 300);
  std::cout << equal << " renderings equal, " << refused << " refused by both, " << beyond
            << " that need a changed list equal too\n";
}

}  // namespace
}  // namespace warmpath
