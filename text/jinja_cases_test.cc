// The language itself, corner by corner, against Jinja2 (testdata/jinja_cases.jsonl, written by
// reference/jinja_cases.py); and what Jinja2 cannot say: places of errors, limits, and where the bytes of a rendering
// come from.
#include <gtest/gtest.h>

#include <fstream>

#include "text/chat_template.h"
#include "text/json_value.h"

namespace warmpath {
namespace {

Result<MarkedText> render(std::string source, Value variables = Value::dict(), RenderLimits limits = {}) {
  auto compiled = ChatTemplate::compile(std::move(source), "<s>", "</s>", limits);
  if (!compiled.ok()) return compiled.status();
  Conversation conversation;
  conversation.kwargs = std::move(variables);
  using namespace std::chrono;
  conversation.now = sys_days(year(2026) / 1 / 2) + hours(3) + minutes(4) + seconds(5);
  return (*compiled)->render(conversation);
}

TEST(Jinja, EveryCaseIsAsJinja2HasIt) {
  std::ifstream file(std::string(WARMPATH_SOURCE_DIR) + "/text/testdata/jinja_cases.jsonl");
  std::vector<Value> cases;
  Value variables;
  for (std::string line; std::getline(file, line);) {
    auto row = value_from_json(line);
    ASSERT_TRUE(row.ok()) << row.status().message() << "\n" << line;
    if (const Value* found = row->find("vars")) {
      variables = *found;
    } else {
      cases.push_back(*row);
    }
  }
  ASSERT_GT(cases.size(), 150u);
  int texts = 0;
  int errors = 0;
  for (const Value& row : cases) {
    const std::string source = row.find("template")->string_or_empty();
    const auto text = render(source, variables);
    if (const Value* expected = row.find("text")) {
      EXPECT_TRUE(text.ok()) << source << "\n" << text.status().message();
      if (!text.ok()) continue;
      EXPECT_EQ(text->to_string(), expected->string_or_empty()) << source;
      ++texts;
    } else {
      ++errors;
      EXPECT_FALSE(text.ok()) << source << "\nJinja2: " << row.find("error")->string_or_empty();
      if (text.ok()) continue;
      EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument) << text.status().message();
    }
  }
  std::cout << texts << " texts and " << errors << " refusals as Jinja2 has them\n";
}

}  // namespace
}  // namespace warmpath
