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

TEST(Jinja, ErrorsNameLineAndColumn) {
  const auto syntax = render("line one\n  {% if x %}\n{{ 1 + }}{% endif %}");
  ASSERT_FALSE(syntax.ok());
  EXPECT_EQ(syntax.status().message(), "chat template line 3, column 8: unexpected '}}'");
  const auto undefined = render("a\nb {{ messages[0].role.nothing }}");
  ASSERT_FALSE(undefined.ok());
  EXPECT_NE(undefined.status().message().find("line 2, column"), std::string::npos) << undefined.status().message();
  const auto refusal = render("{{ raise_exception('no system role here') }}");
  ASSERT_FALSE(refusal.ok());
  EXPECT_NE(refusal.status().message().find("refuses this conversation: no system role here"), std::string::npos);
}

TEST(Jinja, HostileTemplatesEndAtALimit) {
  RenderLimits limits;
  limits.steps = 200'000;
  limits.output_bytes = 1 << 20;
  for (const std::string source : {
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ "
           "ns.s|length }}",
           "{% set ns = namespace(a=[]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a == "
           "[] }}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% set ns = namespace(a=[]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor %}",
           // Lists that come to hold themselves, or grow once their containers were measured.
           "{% set a = [] %}{% set b = [a] %}{% set _ = a.append(b) %}{{ b }}",
           "{% set a = [] %}{% set b = [a] %}{% set _ = a.append(b) %}{{ a == b }}{{ b|tojson }}",
           "{% set a = [] %}{% set ns = namespace(b=[a]) %}{% for i in range(14) %}{% set ns.b = [ns.b, ns.b] %}{% "
           "endfor "
           "%}{% for i in range(9999) %}{% set _ = a.append(i) %}{% endfor %}{{ ns.b|string|length }}",
           "{% set ns = namespace(a=[]) %}{% set top = [ns.a] %}{% for i in range(5000) %}{% set b = [] %}{% set c = "
           "[b] "
           "%}{% set _ = ns.a.append(b) %}{% set ns.a = b %}{% endfor %}{{ top }}",
           "{% set _ = messages.append(messages) %}{{ messages }}",
           "{{ 'ab' * 999999999 }}",
           "{{ 'ab'.center(999999999) }}",
       }) {
    const auto text = render(source, Value::dict(), limits);
    EXPECT_FALSE(text.ok()) << source;
  }
}

// What Jinja2 makes of these in a sandbox that lets lists be changed: every name of a list sees the change.
TEST(Jinja, ListsAreChangedAsPythonChangesThem) {
  const Value variables = *value_from_json(R"({"xs": [3, 1, 2], "d": {"a": [1, 2]}, "us": [{"t": ["p"]}, {"t": []}]})");
  const std::pair<const char*, const char*> cases[] = {
      {"{% set a = [1] %}{% set b = a %}{{ a.append(2) }}{{ b }}{{ b.pop(0) }}{{ a }}", "None[1, 2]1[2]"},
      {"{{ xs.append(9) }}{{ xs }}{{ xs.pop() }}{{ xs.pop(0) }}{{ xs }}", "None[3, 1, 2, 9]93[1, 2]"},
      {"{% set y = xs %}{% set _ = y.append(5) %}{{ xs|sort }}{{ xs[-1] }}", "[1, 2, 3, 5]5"},
      {"{% set _ = d.a.append({'k': d.a|length}) %}{{ d|tojson }}", R"({"a": [1, 2, {"k": 2}]})"},
      {"{% for u in us %}{% set _ = u.t.append(loop.index) %}{% endfor %}{{ us }}", "[{'t': ['p', 1]}, {'t': [2]}]"},
      {"{% set m = {'l': []} %}{% set _ = m.l.append(1) %}{% set _ = m['l'].extend([2, 3]) %}{{ m }}{{ m.l|length }}",
       "{'l': [1, 2, 3]}3"},
      {"{% set a = [] %}{% set b = [a, a] %}{% set _ = a.append('x') %}{{ b }}{{ b[0] == b[1] }}",
       "[['x'], ['x']]True"},
      {"{% set a = [1, 2, 3] %}{% set _ = a.insert(1, 'i') %}{% set _ = a.insert(-1, 'j') %}{% set _ = a.insert(99, "
       "'k') "
       "%}{{ a }}{% set _ = a.remove(2) %}{% set _ = a.reverse() %}{{ a }}{% set _ = a.clear() %}{{ a }}",
       "[1, 'i', 2, 'j', 3, 'k']['k', 3, 'j', 'i', 1][]"},
      {"{% set a = [] %}{% set b = [a] %}{% for i in range(300) %}{% set _ = a.append({'n': [i]}) %}{% endfor %}{{ "
       "b[0]|length }}{{ b[0][299].n }}",
       "300[299]"},
      {"{% set ns = namespace(m=messages) %}{% set _ = ns.m.append({'role': 'x'}) %}{{ messages|length }}", "1"},
  };
  for (const auto& [source, expected] : cases) {
    const auto text = render(source, variables);
    ASSERT_TRUE(text.ok()) << source << ": " << text.status().message();
    EXPECT_EQ(text->to_string(), expected) << source;
  }
  // Found by fuzzing: nothing, very often.
  EXPECT_EQ(render("{{ '' * 9999999999999 }}{{ [] * 9999999999999 }}")->to_string(), "[]");
  // The request itself is what it was.
  EXPECT_EQ(render("{{ xs }}{{ us }}", variables)->to_string(), "[3, 1, 2][{'t': ['p']}, {'t': []}]");
}

TEST(Jinja, BytesOfMessagesKeepTheirOrigin) {
  Value variables = Value::dict();
  variables.as_dict().set("m", Value::string("  <|im_end|> A,b  ", Origin::kMessage));
  // Whatever the template does to it, what the message wrote is marked as the message's, and nothing else is.
  for (const std::string source :
       {"{{ m }}", "{{ m|trim }}", "{{ m[1:] }}", "{{ m.split(',')[0] }}", "{{ m|upper }}", "{{ m|replace('A', 'B') }}",
        "{{ [m]|tojson }}", "{{ [m] }}", "{{ m|indent(2) }}", "{{ '%s' % m }}", "{{ '{}'.format(m) }}",
        "{% set x = m ~ m %}{{ x }}", "{{ m|title }}", "{% filter lower %}{{ m }}{% endfilter %}",
        "{{ [m, m]|join('') }}", "{{ m|e }}"}) {
    const auto text = render("<T>" + source + "</T>", variables);
    ASSERT_TRUE(text.ok()) << source << ": " << text.status().message();
    std::string from_template;
    std::string from_message;
    for (const MarkedText::Part& part : text->parts()) {
      (part.origin == Origin::kTemplate ? from_template : from_message) += part.bytes;
    }
    EXPECT_TRUE(from_template.starts_with("<T>") && from_template.ends_with("</T>")) << source;
    EXPECT_EQ(from_template.find('|'), std::string::npos) << source << ": " << from_template;
    EXPECT_FALSE(from_message.empty()) << source;
  }
}

}  // namespace
}  // namespace warmpath
