// Rows of roles that agents send, through templates that take them and templates that do not.
#include "text/role_folding.h"

#include <gtest/gtest.h>

#include "text/default_rendering.h"
#include "text/json_value.h"

namespace warmpath {
namespace {

constexpr std::string_view kRow = R"({"messages": [
    {"role": "system", "content": "s1"}, {"role": "system", "content": [{"type": "text", "text": "s2"}]},
    {"role": "user", "content": "u1"}, {"role": "user", "content": "u2"}, {"role": "system", "content": "late"},
    {"role": "assistant", "content": ""}, {"role": "assistant", "content": "a2"},
    {"role": "system", "content": "later"}, {"role": "user", "content": "u3"}]})";

std::string rendered(const char* source) {
  const auto compiled = ChatTemplate::compile(source, "", "").value();
  const Conversation conversation = conversation_from_json(kRow).value();
  const auto adapted = adapt_conversation(compiled->abilities(), conversation).value();
  const auto text = compiled->render(adapted.conversation);
  return text.ok() ? text->to_string() : text.status().message();
}

TEST(RoleFolding, ATemplateThatTakesAllGetsAll) {
  EXPECT_EQ(rendered("{% for m in messages %}[{{ m.role[0] }}:{{ m.content }}]{% endfor %}"),
            "[s:s1][s:s2][u:u1][u:u2][s:late][a:][a:a2][s:later][u:u3]");
}

TEST(RoleFolding, AStrictTemplateGetsAlternatingRoles) {
  EXPECT_EQ(rendered("{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                     "{{ raise_exception('System message must be at the beginning') }}{% endif %}"
                     "{% if not loop.first and loop.previtem.role == m.role %}{{ raise_exception('roles') }}{% endif %}"
                     "[{{ m.role[0] }}:{{ m.content }}]{% endfor %}"),
            "[s:s1\n\ns2][u:u1\n\nu2\n\nlate][a:a2][u:later\n\nu3]");
}

TEST(RoleFolding, OneThatOnlyReadsTheFirstSystemMessageLosesNothing) {
  EXPECT_EQ(
      rendered(
          "{% if messages[0].role == 'system' %}<{{ messages[0].content }}>{% endif %}"
          "{% for m in messages %}{% if m.role != 'system' %}[{{ m.role[0] }}:{{ m.content }}]{% endif %}{% endfor %}"),
      "<s1\n\ns2>[u:u1][u:u2\n\nlate][a:][a:a2][u:later][u:u3]");
}

}  // namespace
}  // namespace warmpath
