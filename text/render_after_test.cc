// Renderings that go on from an earlier one must be the whole rendering, byte for byte and part for part: for every
// template and conversation of the shared model data, grown message by message, and for small templates that do what
// templates can do to make that hard, over conversations that grow, shrink and fork.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "text/chat_template.h"

namespace warmpath {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

struct Counts {
  size_t turns = 0;
  size_t resumed = 0;
  size_t reused = 0;
  size_t rendered = 0;
};

// The conversation after `before`; the rendering, for the next turn. `before` stays what it was when it is refused.
void check_turn(const ChatTemplate& compiled, const Conversation& conversation, std::optional<Rendering>& before,
                Counts& counts) {
  const auto whole = compiled.render(conversation);
  auto after = compiled.render_after(before ? &*before : nullptr, conversation);
  ASSERT_EQ(after.ok(), whole.ok()) << (whole.ok() ? after : Result<Rendering>(whole.status())).status().message();
  if (!whole.ok()) {
    EXPECT_EQ(after.status().message(), whole.status().message());
    return;
  }
  ASSERT_EQ(after->text.to_string(), whole->to_string());
  const auto parts = after->text.parts();
  ASSERT_EQ(parts.size(), whole->parts().size());
  for (size_t index = 0; index < parts.size(); ++index) {
    ASSERT_EQ(parts[index].bytes, whole->parts()[index].bytes);
    ASSERT_EQ(parts[index].origin, whole->parts()[index].origin);
  }
  ++counts.turns;
  counts.resumed += after->reused_messages > 0 ? 1 : 0;
  counts.reused += after->reused_messages;
  counts.rendered += after->new_messages;
  before = *std::move(after);
}

Conversation with_messages(const Conversation& source, const std::vector<Value>& messages) {
  Conversation conversation = source;
  conversation.messages = Value::list(messages);
  conversation.messages.as_list().frozen = true;
  return conversation;
}

TEST(RenderAfter, EveryTemplateAndConversationGrownMessageByMessage) {
  const std::filesystem::path data = std::filesystem::path(WARMPATH_SOURCE_DIR) / "../shared/model_data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no model data at " << data;
  Counts all;
  size_t resuming_templates = 0;
  for (const auto& file : std::filesystem::directory_iterator(data / "chat_templates")) {
    const auto compiled = ChatTemplate::compile(read_file(file.path()), "<|bos|>", "<|eos|>");
    ASSERT_TRUE(compiled.ok());
    Counts counts;
    for (const auto& conversation_file : std::filesystem::directory_iterator(data / "conversations")) {
      SCOPED_TRACE(file.path().filename().string() + " x " + conversation_file.path().filename().string());
      auto source = conversation_from_json(read_file(conversation_file.path()));
      ASSERT_TRUE(source.ok());
      source->now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2);
      // A conversation of several is longer: an agent's history after every short one.
      std::vector<Value> items = source->messages.as_list().items;
      if (items.size() < 6) {
        const auto longer = conversation_from_json(read_file(data / "conversations/11_long_agent_history.json"));
        for (const Value& message : longer->messages.as_list().items) {
          if (message.find("role")->string_or_empty() != "system") items.push_back(message);
        }
      }
      std::optional<Rendering> before;
      for (size_t count = 1; count <= items.size(); ++count) {
        check_turn(**compiled,
                   with_messages(*source, {items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count)}), before,
                   counts);
        if (HasFatalFailure()) return;
      }
    }
    resuming_templates += counts.resumed > 0 ? 1 : 0;
    std::cout << file.path().filename().string() << ": " << counts.resumed << " of " << counts.turns
              << " renderings went on from the one before; " << counts.reused << " messages taken over, "
              << counts.rendered << " rendered\n";
    all.turns += counts.turns;
    all.resumed += counts.resumed;
  }
  EXPECT_GT(resuming_templates, 24u);
  EXPECT_GT(all.resumed, all.turns / 2);
}

// Messages of which some look alike, as a seed has it.
std::vector<Value> random_messages(std::mt19937& random, size_t count) {
  std::vector<Value> messages;
  for (size_t index = 0; index < count; ++index) {
    const char* roles[] = {"user", "assistant", "tool", "system"};
    Value message = Value::dict();
    message.as_dict().set("role", Value::string(roles[random() % 4], Origin::kMessage));
    std::string content(1, static_cast<char>('a' + random() % 5));
    if (random() % 4 == 0) content += "</think>x";
    message.as_dict().set("content", Value::string(std::move(content), Origin::kMessage));
    message.as_dict().set("n", Value::integer(static_cast<int64_t>(random() % 3)));
    message.as_dict().frozen = true;
    messages.push_back(std::move(message));
  }
  return messages;
}

constexpr const char* kTemplates[] = {
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ messages|length }}",
    // Looks ahead, back and at the end.
    "{% for m in messages %}{% if loop.first %}^{% endif %}{{ m.content }}{% if loop.last %}${% endif %}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% if not loop.last and loop.nextitem.role == m.role %}+{% endif %}{% "
    "endfor %}",
    "{% for m in messages %}{% if loop.previtem and loop.previtem.role == 'tool' %}t{% endif %}{{ m.content }}{% "
    "endfor %}",
    "{% for m in messages %}{{ loop.revindex }}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ m.content if loop.revindex > 3 else '*' }}{% endfor %}",
    "{% for m in messages %}{% if loop.index == loop.length %}!{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% if loop.index0 == messages|length - 1 %}!{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% if messages|length - 2 <= loop.index0 %}!{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{{ messages[loop.index0 + 1].role if loop.index < messages|length }}{% "
    "endfor %}",
    "{% for m in messages %}{{ messages[-1].n }}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ messages[:loop.index0]|length }}{{ messages[loop.index:]|length }}{% endfor %}",
    "{% for m in messages %}{{ messages[:loop.index]|map(attribute='n')|join(',') }};{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% if m == messages|last %}L{% endif %}{% endfor %}",
    // Computed before the loop.
    "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}{% for m in messages %}{{ m.content if loop.index0 > ns.last else '-' }}{% endfor %}",
    "{% set ns = namespace(last=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' and not ns.last %}{% set "
    "ns.last ="
    " messages|length - loop.index %}{% endif %}{% endfor %}{% for m in messages %}{% if ns.last - 1 == loop.index0 %}@"
    "{% elif loop.index <= ns.last + 1 %}<{% endif %}{{ m.content }}{% endfor %}",
    "{% set users = messages|selectattr('role', 'equalto', 'user')|list %}{% for m in messages %}{{ m.content }}"
    "{% if users and m == users[-1] %}U{% endif %}{{ users[0].n }}{% endfor %}",
    "{% set loop_messages = messages[1:] %}{% for m in loop_messages %}{{ m.content }}{{ loop_messages[loop.index0].n "
    "}}"
    "{% endfor %}",
    "{% set count = messages|length %}{% for m in messages %}{{ m.content }}{% if loop.index < count - 2 %}.{% endif %}"
    "{% endfor %}",
    "{% set count = messages|length %}{% for m in messages %}{{ m.content }}{{ count }}{% endfor %}",
    "{% set late = 'x' if messages|length > 4 else 'y' %}{% for m in messages %}{{ m.content }}{{ late if m.n == 2 }}"
    "{% endfor %}",
    // Carried from round to round.
    "{% set ns = namespace(n=0, text='') %}{% for m in messages %}{% set ns.n = ns.n + m.n %}{% if ns.n % 2 %}{{ ns.n "
    "}}"
    "{% endif %}{% set ns.text = ns.text + m.content %}{% endfor %}{{ ns.n }}{{ ns.text }}",
    "{% set ns = namespace(seen=false) %}{% for m in messages %}{% if not ns.seen %}{{ m.content }}{% endif %}"
    "{% if m.role == 'tool' %}{% set ns.seen = true %}{% endif %}{% endfor %}{{ ns.seen }}",
    "{% set ns = namespace() %}{% for m in messages %}{% if m.n == 1 %}{% set ns.one = m %}{% endif %}"
    "{{ ns.one.content if ns.one is defined else '?' }}{% endfor %}",
    "{% set ns = namespace(inner=none) %}{% for m in messages %}{% set inner = namespace(x=m.n) %}{% if m.n == 1 %}"
    "{% set ns.inner = inner %}{% endif %}{{ ns.inner.x if ns.inner }}{% set inner.x = 7 %}{{ m.content }}{% endfor %}",
    "{% set q = namespace(ids=[]) %}{% for m in messages %}{% if m.role == 'user' %}{% set _ = q.ids.append(m.content) "
    "%}"
    "{% elif q.ids %}{{ q.ids.pop(0) }}{% endif %}{{ q.ids|length }}{% endfor %}{{ q.ids }}",
    "{% set q = [] %}{% for m in messages %}{% set _ = q.append(m.n) %}{{ q|join }}|{% if q|length > 3 %}!{% endif %}"
    "{% endfor %}{{ q }}",
    "{% set q = [] %}{% set ns = namespace(q=q) %}{% for m in messages %}{% set _ = q.append(m.n) %}{{ ns.q|sum }}"
    "{% endfor %}{{ ns.q }}",
    "{% set ns = namespace(q=[]) %}{% for m in messages %}{% if m.n == 0 %}{% set ns.q = [] %}{% endif %}"
    "{% set _ = ns.q.append(m.content) %}{{ ns.q|join }};{% endfor %}",
    "{% set ns = namespace(q=[]) %}{% for m in messages %}{% set ns.q = ns.q + [m.n] %}{{ ns.q|join }};{% endfor %}",
    "{% set ns = namespace(d={}) %}{% for m in messages %}{% set ns.d = dict(ns.d, **{m.role: m.n}) %}{{ ns.d }};"
    "{% endfor %}",
    "{% set ns = namespace(t=()) %}{% for m in messages %}{% set ns.t = (m.n, ns.t) %}{{ ns.t if m.n }};{% endfor %}",
    // Objects with a state.
    "{% set j = joiner(', ') %}{% for m in messages %}{{ j() }}{{ m.content }}{% endfor %}",
    "{% set c = cycler('a', 'b', 'c') %}{% for m in messages %}{{ c.next() if m.n }}{{ c.current }}{{ m.content }}"
    "{% endfor %}{{ c.current }}",
    "{% for m in messages %}{% if loop.changed(m.role) %}[{{ m.role }}]{% endif %}{{ m.content }}{% endfor %}",
    "{% set g = messages|map(attribute='content') %}{% for m in messages %}{% if m.n == 1 %}{{ g|join }}{% endif %}"
    "{{ m.role }}{% endfor %}{{ g|join }}",
    "{% for m in messages %}{{ loop.cycle('x', 'y') }}{{ m.content }}{% endfor %}",
    // Macros, and what they see.
    "{% set tail = messages|length %}{% macro say(m) %}<{{ m.content }}{{ tail if m.n == 2 }}>{% endmacro %}"
    "{% for m in messages %}{{ say(m) }}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% macro count() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}"
    "{% for m in messages %}{{ count() }}{{ m.content }}{% endfor %}{{ ns.n }}",
    "{% for m in messages %}{% macro say() %}{{ m.content }}{{ loop.last }}{% endmacro %}{{ say() }}{% endfor %}",
    "{% set ns = namespace(f=none) %}{% for m in messages %}{% macro say() %}{{ m.content }}{% endmacro %}"
    "{% if m.n == 1 or not ns.f %}{% set ns.f = say %}{% endif %}{{ ns.f() }}{% endfor %}",
    // Ends early, filters, nests.
    "{% for m in messages %}{% if m.n == 2 and m.role == 'tool' %}{% break %}{% endif %}{{ m.content }}{% endfor %}.",
    "{% for m in messages %}{% if m.n == 2 %}{% continue %}{% endif %}{{ m.content }}{{ loop.index }}{% endfor %}",
    "{% for m in messages if m.role != 'tool' %}{{ m.content }}{{ loop.index }}{{ loop.last }}{% endfor %}",
    "{% for a in messages %}{% for b in messages %}{{ b.n if loop.last }}{% endfor %}{{ a.content }}{% endfor %}",
    "{% for a in messages %}{% for b in messages[:2] %}{{ b.n }}{{ loop.last }}{% endfor %}{{ a.content }}{% endfor %}",
    "{% for m in messages %}{% set messages = [m] %}{{ messages|length }}{{ messages[0].content }}{% endfor %}",
    "{% for m in messages|reverse %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ m.content|upper }}{% endfor %}{% for m in messages %}{{ loop.length if loop.first }}"
    "{{ m.role }}{% endfor %}",
    "{{ messages|length }}{% if messages|length > 2 %}{% for m in messages %}{{ m.content }}{% endfor %}{% else %}"
    "{% for m in messages %}({{ m.content }}){% endfor %}{% endif %}",
    "{% filter upper %}{% for m in messages %}{{ m.content }}{% endfor %}{% endfilter %}",
    "{% generation %}{% for m in messages %}{{ m.content }}{% endfor %}{% endgeneration %}",
    "{% for m in messages recursive %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{{ add_generation_prompt }}{{ thinking if m.n == 1 }}{% endfor %}",
    "{% for m in messages %}{% if m.n == 1 %}{{ strftime_now('%H:%M:%S') }}{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ raise_exception('too late') if loop.index > 6 and m.n == 2 }}{{ m.content }}{% endfor "
    "%}",
    "{% for m in messages %}{{ '{' }}{{ '' }}{{ m.content[:0] }}{{ m }}{{ '}' }}{% endfor %}",
};

TEST(RenderAfter, HardTemplatesOverConversationsThatGrowShrinkAndFork) {
  Counts all;
  for (const char* source : kTemplates) {
    SCOPED_TRACE(source);
    const auto compiled = ChatTemplate::compile(source, "<|bos|>", "<|eos|>");
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    Counts counts;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      std::mt19937 random(seed);
      std::vector<Value> messages = random_messages(random, 1 + random() % 4);
      std::optional<Rendering> before;
      Conversation conversation;
      conversation.now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2);
      for (int turn = 0; turn < 14; ++turn) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", turn " + std::to_string(turn));
        check_turn(**compiled, with_messages(conversation, messages), before, counts);
        if (HasFatalFailure()) return;
        const uint32_t dice = random() % 12;
        if (dice == 0) messages.resize(random() % messages.size() + 1);
        if (dice == 1) conversation.add_generation_prompt = !conversation.add_generation_prompt;
        if (dice == 2) {
          conversation.kwargs = Value::dict();
          conversation.kwargs.as_dict().set("thinking", Value::integer(turn));
        }
        if (dice == 3) *conversation.now += std::chrono::seconds(1);
        if (dice == 4) messages[random() % messages.size()] = random_messages(random, 1)[0];
        const std::vector<Value> more = random_messages(random, random() % 3);
        messages.insert(messages.end(), more.begin(), more.end());
      }
    }
    all.turns += counts.turns;
    all.resumed += counts.resumed;
  }
  std::cout << all.resumed << " of " << all.turns << " renderings went on from the one before\n";
  EXPECT_GT(all.resumed, all.turns / 4);
}

// What an agent's turn costs: a call and its result behind a long history.
size_t new_messages(const std::string& source) {
  const auto compiled = ChatTemplate::compile(source, "", "");
  EXPECT_TRUE(compiled.ok());
  std::mt19937 random(1);
  std::vector<Value> messages = random_messages(random, 100);
  const auto before = (*compiled)->render_after(nullptr, with_messages({}, messages));
  for (const char* role : {"assistant", "tool"}) {
    Value message = Value::dict();
    message.as_dict().set("role", Value::string(role, Origin::kMessage));
    message.as_dict().set("content", Value::string("more", Origin::kMessage));
    messages.push_back(std::move(message));
  }
  const auto after = (*compiled)->render_after(&*before, with_messages({}, messages));
  EXPECT_TRUE(after.ok());
  EXPECT_EQ(after->reused_messages + after->new_messages, 102u);
  return after->new_messages;
}

TEST(RenderAfter, OnlyWhatIsNewIsRendered) {
  EXPECT_EQ(new_messages("{% for m in messages %}{{ m.content }}{% endfor %}"), 2u);
  // The last message of before is the last no more.
  EXPECT_EQ(new_messages("{% for m in messages %}{{ m.content }}{{ ';' if loop.last }}{% endfor %}"), 3u);
  EXPECT_EQ(new_messages("{% for m in messages %}{% if loop.index0 == messages|length - 1 %};{% endif %}{% endfor %}x"),
            3u);
  EXPECT_EQ(new_messages("{% set ns = namespace(last=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' and not "
                         "ns.last %}{% set ns.last = messages|length - loop.index %}{% endif %}{% endfor %}"
                         "{% for m in messages %}{{ m.content if loop.index0 > ns.last else '-' }}{% endfor %}"),
            2u);
  // Every message depends on the last one.
  EXPECT_EQ(new_messages("{% for m in messages %}{{ m.content }}{{ loop.revindex }}{% endfor %}"), 102u);
}

}  // namespace
}  // namespace warmpath
