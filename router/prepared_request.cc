#include "router/prepared_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/block_chain.h"
#include "router/wire/chat.h"
#include "router/wire/completions.h"
#include "router/wire/json_reader.h"
#include "router/wire/messages.h"
#include "router/wire/responses.h"
#include "text/answer/call_grammar.h"
#include "text/schema/json_schema.h"

namespace warmpath {

namespace {

// Of all choices together: each is a sequence at a replica.
constexpr size_t kMaxChoicesPerRequest = 1024;

bool find_model(const Fleet& fleet, PreparedRequest& prepared, WireError& error) {
  prepared.model = fleet.find(prepared.options.model);
  if (!prepared.model) {
    error = {.status = 404,
             .message = fmt::format("The model '{}' does not exist; GET /v1/models lists those that do",
                                    prepared.options.model),
             .param = "model",
             .code = "model_not_found"};
    return false;
  }
  prepared.asked_model = prepared.options.model.empty() ? prepared.model->name() : prepared.options.model;
  prepared.identity = prepared.model->identity();
  if (!prepared.identity) {
    error = nobody_to_serve(fmt::format("No replica of '{}' has answered yet", prepared.model->name()), 2);
    return false;
  }
  return true;
}

// How the answer will be read: for calls where there are tools, for reasoning always.
void choose_parser(const Conversation& conversation, PreparedRequest& prepared) {
  const std::shared_ptr<const AnswerMarkers>& markers = prepared.identity->markers;
  const AnswerFormat format = markers->format();
  const bool calls = format.calls != CallFormat::kNone && conversation.tools.is_list();
  if (!calls && format.reasoning == ReasoningFormat::kNone && format.calls != CallFormat::kHarmony) return;
  prepared.markers = markers;
  prepared.parser_options.tools = conversation.tools;
  // Wide enough for the marker in any tokens, and white space behind it.
  constexpr size_t kTail = 24;
  const std::span<const TokenId> tokens = prepared.prompts.back().tokens;
  const std::string tail =
      prepared.identity->tokenizer->decode(tokens.subspan(tokens.size() - std::min(tokens.size(), kTail)));
  prepared.parser_options.in_reasoning = conversation.add_generation_prompt && prompt_opens_reasoning(*markers, tail);
}

bool refuse_rules(std::string_view param, std::string message, WireError& error) {
  error = bad_request(param, std::move(message));
  return false;
}

// The tools that must be called: there, and with schemas that can be kept.
bool check_callable(const Value& tools, const OutputRules& rules, WireError& error) {
  if (!tools.is_list())
    return refuse_rules("tool_choice", "'tool_choice' demands a call, and there are no 'tools'", error);
  std::vector<std::string> found;
  const auto& items = tools.as_list().items;
  for (size_t n = 0; n < items.size(); ++n) {
    const std::string name = items[n].find("function")->find("name")->string_or_empty();
    if (!rules.only.empty() && std::find(rules.only.begin(), rules.only.end(), name) == rules.only.end()) continue;
    found.push_back(name);
    const Result<std::string> schema = prepare_json_schema(parameters_schema(items[n]));
    if (!schema.ok()) {
      return refuse_rules(
          fmt::format("tools[{}]", n),
          fmt::format("The tool '{}' cannot be demanded: in its parameters {}", name, schema.status().message()),
          error);
    }
  }
  for (const std::string& name : rules.only) {
    if (std::find(found.begin(), found.end(), name) != found.end()) continue;
    return refuse_rules("tool_choice",
                        fmt::format("'tool_choice' names '{}', which is not among the tools that this "
                                    "model sees",
                                    name.substr(0, 128)),
                        error);
  }
  return true;
}

bool check_format(const OutputRules& rules, WireError& error) {
  if (rules.format.kind != Grammar::Kind::kJsonSchema) return true;
  const Result<std::string> schema = prepare_json_schema(rules.format.text);
  return schema.ok() || refuse_rules(rules.format_param, "In the schema " + schema.status().message(), error);
}

// What the answers must look like.
bool choose_grammar(PreparedRequest& prepared, WireError& error) {
  const OutputRules& rules = prepared.options.rules;
  const bool required = rules.calls == OutputRules::Calls::kRequired;
  if (!required && rules.format.empty()) return true;
  const std::string_view param = required ? std::string_view("tool_choice") : std::string_view(rules.format_param);
  if (!prepared.model->constrains()) {
    error = unsupported(param,
                        fmt::format("'{}' demands an answer of a certain shape, and no replica of '{}' can constrain "
                                    "its answers",
                                    param, prepared.asked_model));
    return false;
  }
  if (!check_format(rules, error)) return false;
  if (prepared.wire == Wire::kCompletions) {
    prepared.grammar = rules.format;
    return true;
  }
  const AnswerMarkers& markers = *prepared.identity->markers;
  const Value& tools = prepared.parser_options.tools;
  const bool callable = markers.format().calls != CallFormat::kNone && tools.is_list();
  if (required && markers.format().calls == CallFormat::kNone) {
    return refuse_rules(
        param, "This model's answers are not read for calls (parsers.tools: none), so none can be demanded", error);
  }
  if (required && !check_callable(tools, rules, error)) return false;
  Grammar answer;
  if (required) {
    answer = call_grammar(markers, tools, rules.only, rules.parallel);
  } else {
    answer = rules.format;
    // A call instead of the answer stays possible; tools whose schemas cannot be kept are left to the model's own
    // skill.
    WireError ignored;
    if (callable && check_callable(tools, rules, ignored)) {
      answer = Grammar::any_of({call_grammar(markers, tools, {}, rules.parallel), std::move(answer)});
    }
  }
  if (markers.format().calls == CallFormat::kHarmony && !required) {
    return refuse_rules(
        param, fmt::format("'{}' is not supported for this model's answers, which come in channels", param), error);
  }
  prepared.grammar = after_reasoning(markers, prepared.parser_options.in_reasoning, std::move(answer));
  return true;
}

// What BaseFinder tells bases apart by. JSON objects tell where they end, so joining them is not ambiguous.
std::vector<std::string_view> base_source(const ChatRequest& request, const Conversation& conversation) {
  const size_t leading = BaseFinder::leading_messages(conversation);
  std::vector<std::string_view> source(request.messages.begin(),
                                       request.messages.begin() + static_cast<std::ptrdiff_t>(leading));
  source.push_back(leading < request.messages.size() ? "user" : "none");
  source.insert(source.end(), request.tools.begin(), request.tools.end());
  source.push_back("kwargs");
  source.push_back(request.template_kwargs);
  source.push_back(request.reasoning_effort);
  return source;
}

std::vector<std::string_view> base_source(const MessagesRequest& request, const Conversation&) {
  std::vector<std::string_view> source = request.tools;
  source.insert(source.end(), {"messages", request.system_blocks, request.system_text, "effort", request.effort});
  return source;
}

std::vector<std::string_view> base_source(const ResponsesRequest& request, const Conversation&) {
  std::vector<std::string_view> source = request.tools;
  source.insert(source.end(), {"responses", request.instructions, "effort", request.effort});
  if (!request.input.empty()) source.push_back(request.input.front());
  return source;
}

// Renders and tokenizes what the adapters have read.
bool encode_conversation(const Conversation& conversation, std::span<const std::string_view> base_source,
                         PreparedRequest& prepared, WireError& error) {
  PromptEncoder& encoder = *prepared.identity->encoder;
  Result<EncodedPrompt> encoded = encoder.encode_conversation(conversation);
  if (!encoded.ok()) {
    error = from_status(encoded.status());
    if (error.status == 400) error.param = prompt_field(prepared.wire);
    return false;
  }
  prepared.default_tools = encoded->default_tools;
  PreparedPrompt& prompt = prepared.prompts.emplace_back();
  prompt.tokens = std::move(encoded->tokens);
  prompt.base_tokens = prepared.identity->bases->count(encoder, base_source, conversation, prompt.tokens);
  choose_parser(conversation, prepared);
  return true;
}

// Scanned, then read with the message cache of the model that it names.
template <typename Request, typename Read>
bool encode_with(Request& request, Read read, PreparedRequest& prepared, const Fleet& fleet, WireError& error) {
  prepared.options = std::move(request.options);
  if (!find_model(fleet, prepared, error)) return false;
  if (prepared.identity->encoder->chat_template() == nullptr) {
    error = bad_request("model", fmt::format("'{}' has no chat template; use /v1/completions", prepared.asked_model));
    return false;
  }
  Conversation conversation;
  if (!read(prepared.identity->encoder->messages(), conversation)) return false;
  return encode_conversation(conversation, base_source(request, conversation), prepared, error);
}

bool encode_chat(std::string_view body, PreparedRequest& prepared, const Fleet& fleet, WireError& error) {
  ChatRequest request;
  if (!parse_chat(body, request, error)) return false;
  const auto read = [&](MessageCache& cache, Conversation& conversation) {
    return read_conversation(request, cache, conversation, error);
  };
  return encode_with(request, read, prepared, fleet, error);
}

bool encode_messages(std::string_view body, bool counting, PreparedRequest& prepared, const Fleet& fleet,
                     WireError& error) {
  MessagesRequest request;
  if (!parse_messages(body, counting, request, error)) return false;
  const auto read = [&](MessageCache& cache, Conversation& conversation) {
    return read_messages(request, cache, conversation, prepared.left_out, error);
  };
  return encode_with(request, read, prepared, fleet, error);
}

bool encode_responses(std::string_view body, PreparedRequest& prepared, const Fleet& fleet, WireError& error) {
  ResponsesRequest request;
  if (!parse_responses(body, request, error)) return false;
  const auto read = [&](MessageCache& cache, Conversation& conversation) {
    return read_responses(request, cache, conversation, prepared.response_tools, prepared.left_out, error);
  };
  return encode_with(request, read, prepared, fleet, error);
}

bool encode_completion(std::string_view body, PreparedRequest& prepared, const Fleet& fleet, WireError& error) {
  CompletionRequest request;
  if (!parse_completion(body, request, error)) return false;
  prepared.options = std::move(request.options);
  if (!find_model(fleet, prepared, error)) return false;
  const TokenId vocabulary = prepared.identity->description.vocabulary;
  for (CompletionPrompt& prompt : request.prompts) {
    std::vector<TokenId>& tokens = prepared.prompts.emplace_back().tokens;
    if (!prompt.is_tokens) {
      Result<EncodedPrompt> encoded = prepared.identity->encoder->encode_completion(prompt.text);
      if (!encoded.ok()) {
        error = from_status(encoded.status());
        if (error.status == 400) error.param = "prompt";
        return false;
      }
      tokens = std::move(encoded->tokens);
    } else {
      tokens = std::move(prompt.tokens);
      const TokenId largest = *std::max_element(tokens.begin(), tokens.end());
      if (largest >= vocabulary) {
        error = bad_request(
            "prompt", fmt::format("'prompt' names token {}; this model has tokens 0 to {}", largest, vocabulary - 1));
        return false;
      }
    }
    if (tokens.empty()) {
      error = bad_request("prompt", "'prompt' is empty");
      return false;
    }
  }
  return true;
}

// How many tokens may follow the prompt, or context_length_exceeded.
bool fit_context(const PreparedRequest& prepared, PreparedPrompt& prompt, WireError& error) {
  const std::string_view param = prompt_field(prepared.wire);
  const int64_t context = prepared.identity->description.context_tokens;
  const auto size = static_cast<int64_t>(prompt.tokens.size());
  const int64_t wanted = prepared.options.sampling.max_tokens;  // -1: as many as fit
  if (size >= context) {
    // The one token that every answer needs is counted, so that the second number exceeds the first.
    error = context_overflow(param, context, size, std::max<int64_t>(wanted, 1));
    return false;
  }
  const bool refuse = prepared.model->config().max_tokens_rule == MaxTokensRule::kRefuse;
  if (refuse && wanted > 0 && size + wanted > context) {
    error = context_overflow(param, context, size, wanted);
    return false;
  }
  const int64_t room = context - size;
  prompt.max_tokens = static_cast<int32_t>(wanted < 0 ? room : std::min(wanted, room));
  return true;
}

// The tenant's salt alone, or followed by a caller's own, so that callers of one tenant can keep their caches apart.
std::string salt_of(std::string_view tenant_salt, std::string_view cache_salt) {
  std::string salt(tenant_salt);
  if (!cache_salt.empty()) {
    salt += '\0';
    salt += cache_salt;
  }
  return salt;
}

}  // namespace

std::string_view wire_name(Wire wire) {
  switch (wire) {
    case Wire::kChat:
      return "chat";
    case Wire::kCompletions:
      return "completions";
    case Wire::kMessages:
      return "messages";
    case Wire::kResponses:
      return "responses";
  }
  return "";
}

std::string_view prompt_field(Wire wire) {
  if (wire == Wire::kCompletions) return "prompt";
  return wire == Wire::kResponses ? "input" : "messages";
}

bool prepare(Wire wire, std::string_view body, std::string_view tenant_salt, const Fleet& fleet,
             PreparedRequest& prepared, WireError& error) {
  prepared.wire = wire;
  bool encoded = false;
  switch (wire) {
    case Wire::kChat:
      encoded = encode_chat(body, prepared, fleet, error);
      break;
    case Wire::kCompletions:
      encoded = encode_completion(body, prepared, fleet, error);
      break;
    case Wire::kMessages:
      encoded = encode_messages(body, false, prepared, fleet, error);
      break;
    case Wire::kResponses:
      encoded = encode_responses(body, prepared, fleet, error);
      break;
  }
  if (!encoded || !choose_grammar(prepared, error)) return false;
  const Status valid = validate(prepared.options.sampling, prepared.identity->description.vocabulary);
  if (!valid.ok()) {
    error = from_status(valid);
    error.param = valid.message().substr(0, valid.message().find(' '));
    return false;
  }
  if (prepared.choices() > kMaxChoicesPerRequest) {
    error = bad_request(
        "n", fmt::format("{} prompts with 'n' {} make {} answers; at most {} are allowed", prepared.prompts.size(),
                         prepared.options.sampling.n, prepared.choices(), kMaxChoicesPerRequest));
    return false;
  }
  if (!prepared.options.sampling.stop.empty()) {
    auto stops = StopStrings::create(prepared.options.sampling.stop);
    if (!stops.ok()) {
      error = bad_request("stop", stops.status().message());
      return false;
    }
    prepared.stops = *std::move(stops);
  }
  prepared.salt = salt_of(tenant_salt, prepared.options.cache_salt);
  const Hash128 root = chain_root(prepared.identity->description.fingerprint, prepared.salt, "");
  for (PreparedPrompt& prompt : prepared.prompts) {
    if (!fit_context(prepared, prompt, error)) return false;
    prompt.chain = chain_of(root, prompt.tokens);
  }
  return true;
}

bool encode_prompt(std::string_view body, const Fleet& fleet, PreparedRequest& prepared, WireError& error) {
  bool has_messages = false;
  if (!parse_body(body, error, [&](const JsonField& field) {
        has_messages = has_messages || field.name == "messages";
        return true;
      })) {
    return false;
  }
  prepared.wire = has_messages ? Wire::kChat : Wire::kCompletions;
  return has_messages ? encode_chat(body, prepared, fleet, error) : encode_completion(body, prepared, fleet, error);
}

bool count_prompt_tokens(std::string_view body, const Fleet& fleet, int64_t& tokens, WireError& error) {
  PreparedRequest prepared;
  prepared.wire = Wire::kMessages;
  if (!encode_messages(body, true, prepared, fleet, error)) return false;
  tokens = static_cast<int64_t>(prepared.prompts.front().tokens.size());
  return true;
}

}  // namespace warmpath
