#include "text/chat_template.h"

#include <fmt/format.h>

#include <ctime>
#include <exception>
#include <unordered_map>
#include <vector>

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/json_value.h"
#include "text/template_abilities.h"

namespace warmpath {
namespace {

// Blocks and expressions nested in the source; real templates stay below 20.
constexpr int kMaxSyntaxDepth = 100;

std::tm civil_time(const std::optional<std::chrono::sys_seconds>& now) {
  std::tm civil{};
  if (now) {
    const std::time_t seconds = now->time_since_epoch().count();
    gmtime_r(&seconds, &civil);
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &civil);
  }
  return civil;
}

// Copies a request's values into ones that a template may change. What was one list stays one.
class Thawing {
 public:
  Value copy(const Value& value) {
    if (!value.is_list() && !value.is_dict()) return value;
    if (const auto known = copies_.find(value.as_node()); known != copies_.end()) return known->second;
    Value own = Value::dict();
    if (value.is_list()) {
      std::vector<Value> items;
      for (const Value& item : value.as_list().items) items.push_back(copy(item));
      own = Value::sequence(value.as_list().type, std::move(items));
    } else {
      for (const auto& [key, item] : value.as_dict().entries) own.as_dict().set(key, copy(item));
    }
    copies_.emplace(value.as_node(), own);
    return own;
  }

 private:
  std::unordered_map<const ValueNode*, Value> copies_;
};

// Runs `body`; what it throws becomes a Status.
template <typename Body>
Status guarded(Body body) {
  try {
    body();
    return {};
  } catch (const jinja::TemplateRefusal& refusal) {
    return invalid_argument(
        fmt::format("the model's chat template refuses this conversation: {} (template line {}, column {})",
                    refusal.what(), refusal.place().line, refusal.place().column));
  } catch (const jinja::TemplateError& error) {
    return invalid_argument(
        fmt::format("chat template line {}, column {}: {}", error.place().line, error.place().column, error.what()));
  } catch (const std::exception& error) {
    return internal_error(fmt::format("chat template: {}", error.what()));
  }
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  jinja::Syntax syntax;
  std::string bos_token;
  std::string eos_token;
  RenderLimits limits;
  TemplateAbilities abilities;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::compile(std::string source, std::string bos_token,
                                                                  std::string eos_token, RenderLimits limits) {
  auto impl = std::make_unique<Impl>();
  impl->source = std::move(source);
  impl->bos_token = std::move(bos_token);
  impl->eos_token = std::move(eos_token);
  impl->limits = limits;
  WARMPATH_RETURN_IF_ERROR(guarded([&] { impl->syntax = jinja::parse_template(impl->source, kMaxSyntaxDepth); }));
  std::shared_ptr<ChatTemplate> compiled(new ChatTemplate(std::move(impl)));
  compiled->impl_->abilities = probe_abilities(*compiled);
  return std::shared_ptr<const ChatTemplate>(std::move(compiled));
}

MarkedText ChatTemplate::run(const Conversation& conversation, jinja::LoopRecorder* recorder) const {
  try {
    return run_once(conversation, recorder);
  } catch (const jinja::ChangesRequest&) {
    if (recorder != nullptr) recorder->abandon();
    Conversation own = conversation;
    Thawing thawing;
    own.messages = thawing.copy(conversation.messages);
    own.tools = thawing.copy(conversation.tools);
    own.kwargs = thawing.copy(conversation.kwargs);
    return run_once(own, nullptr);
  }
}

MarkedText ChatTemplate::run_once(const Conversation& conversation, jinja::LoopRecorder* recorder) const {
  const auto operator_text = [](const std::string& bytes) { return Value::string(bytes, Origin::kTemplate); };
  jinja::Interpreter interpreter(impl_->syntax, impl_->limits, civil_time(conversation.now), recorder);
  interpreter.set_variable("messages", conversation.messages);
  interpreter.set_variable("tools", conversation.tools);
  interpreter.set_variable("documents", Value::none());
  interpreter.set_variable("add_generation_prompt", Value::boolean(conversation.add_generation_prompt));
  interpreter.set_variable("bos_token", operator_text(conversation.bos_token.value_or(impl_->bos_token)));
  interpreter.set_variable("eos_token", operator_text(conversation.eos_token.value_or(impl_->eos_token)));
  if (conversation.kwargs.is_dict()) {
    for (const auto& [name, value] : conversation.kwargs.as_dict().entries) {
      interpreter.set_variable(name.string_or_empty(), value);
    }
  }
  return interpreter.run();
}

Result<MarkedText> ChatTemplate::render(const Conversation& conversation) const {
  MarkedText text;
  const Status status = guarded([&] { text = run(conversation, nullptr); });
  if (!status.ok()) return status;
  return text;
}

Result<Rendering> ChatTemplate::render_after(const Rendering* before, const Conversation& conversation) const {
  Rendering rendering;
  const Status status = guarded([&] {
    auto recording = std::make_shared<jinja::Recording>();
    const bool known = before != nullptr && before->loops != nullptr;
    jinja::LoopRecorder recorder(known ? before->loops.get() : nullptr, known ? &before->text : nullptr, *recording);
    rendering.text = run(conversation, &recorder);
    rendering.reused_messages = recording->reused_rounds;
    rendering.new_messages = recording->new_rounds;
    rendering.loops = std::move(recording);
  });
  if (!status.ok()) return status;
  return rendering;
}

size_t Rendering::bytes() const {
  return text.size() + text.parts().size() * sizeof(MarkedText::Part) + (loops ? loops->bytes() : 0);
}

const TemplateAbilities& ChatTemplate::abilities() const { return impl_->abilities; }
const std::string& ChatTemplate::source() const { return impl_->source; }

}  // namespace warmpath
