// Anthropic's message objects and events: content blocks, one after the other, each opened, filled and stopped.
#include "router/wire/answer_writer.h"
#include "router/wire/json_writer.h"
#include "text/answer/json_scanner.h"

namespace warmpath {

namespace {

std::string_view stop_reason(const AnswerEnd& end) {
  if (end.reason != FinishReason::kStop) return "max_tokens";
  if (!end.stop_string.empty()) return "stop_sequence";
  return end.called ? "tool_use" : "end_turn";
}

// `"stop_reason":...,"stop_sequence":...`
void append_stop(std::string& out, const AnswerEnd& end) {
  out += R"("stop_reason":)";
  append_json_string(out, stop_reason(end));
  out += R"(,"stop_sequence":)";
  if (end.reason == FinishReason::kStop && !end.stop_string.empty()) {
    append_json_string(out, end.stop_string);
  } else {
    out += "null";
  }
}

// All input is input_tokens and cache_read_input_tokens together on this wire.
void append_message_usage(std::string& out, const AnswerUsage& usage) {
  out += R"({"input_tokens":)";
  append_json_number(out, usage.prompt_tokens - usage.cached_tokens);
  out += R"(,"cache_creation_input_tokens":0,"cache_read_input_tokens":)";
  append_json_number(out, usage.cached_tokens);
  out += R"(,"output_tokens":)";
  append_json_number(out, usage.completion_tokens);
  out += '}';
}

// Arguments that are no JSON object (a cut or broken call) still have to be one here.
std::string input_object(std::string_view arguments) {
  if (arguments.starts_with('{') && is_json(arguments)) return std::string(arguments);
  std::string wrapped = R"({"raw_arguments":)";
  append_json_string(wrapped, arguments);
  return wrapped + "}";
}

class MessagesWriter final : public AnswerWriter {
 public:
  explicit MessagesWriter(AnswerHead head) : head_(std::move(head)) {}

  void open(std::string& out, int, const AnswerUsage& usage) override {
    event(out, "message_start", R"("message":)");
    append_head(out);
    out += R"("content":[],"stop_reason":null,"stop_sequence":null,"usage":)";
    append_message_usage(out, usage);
    out += "}}\n\n";
  }

  void text(std::string& out, int, std::string_view text, std::span<const TokenChance>) override {
    in_block(out, Block::kText, R"({"type":"text","text":""})");
    delta(out, R"({"type":"text_delta","text":)", text);
  }

  void reasoning(std::string& out, int, std::string_view text) override {
    in_block(out, Block::kThinking, R"({"type":"thinking","thinking":"","signature":""})");
    delta(out, R"({"type":"thinking_delta","thinking":)", text);
  }

  void call(std::string& out, int, std::string_view id, std::string_view name) override {
    stop_block(out);
    std::string block = R"({"type":"tool_use","id":)";
    append_json_string(block, id);
    block += R"(,"name":)";
    append_json_string(block, name);
    block += R"(,"input":{}})";
    in_block(out, Block::kCall, block);
  }

  void arguments(std::string& out, int, std::string_view json) override {
    delta(out, R"({"type":"input_json_delta","partial_json":)", json);
  }

  void end_call(std::string& out, int) override { stop_block(out); }

  void finish(std::string& out, int, const AnswerEnd& end) override {
    stop_block(out);
    end_ = end;
  }

  void close(std::string& out, const AnswerUsage& usage) override {
    event(out, "message_delta", R"("delta":{)");
    append_stop(out, end_);
    out += R"(},"usage":)";
    append_message_usage(out, usage);
    out += "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
  }

  void keep_alive(std::string& out) override { out += "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) override {
    std::string out;
    append_head(out);
    out += R"("content":[)";
    for (size_t n = 0; n < choices[0].parts.size(); ++n) {
      if (n > 0) out += ',';
      append_block(out, choices[0].parts[n]);
    }
    out += "],";
    append_stop(out, choices[0].end);
    out += R"(,"usage":)";
    append_message_usage(out, usage);
    out += '}';
    return out;
  }

 private:
  enum class Block { kNone, kText, kThinking, kCall };

  // `{"id":...,"type":"message","role":"assistant","model":...,`
  void append_head(std::string& out) const {
    out += R"({"id":)";
    append_json_string(out, head_.id);
    out += R"(,"type":"message","role":"assistant","model":)";
    append_json_string(out, head_.model);
    out += ',';
  }

  static void event(std::string& out, std::string_view type, std::string_view begin) {
    out += "event: ";
    out += type;
    out += "\ndata: {\"type\":\"";
    out += type;
    out += "\",";
    out += begin;
  }

  void in_block(std::string& out, Block block, std::string_view opening) {
    if (block_ == block) return;
    stop_block(out);
    block_ = block;
    event(out, "content_block_start", R"("index":)");
    append_json_number(out, index_);
    out += R"(,"content_block":)";
    out += opening;
    out += "}\n\n";
  }

  void delta(std::string& out, std::string_view opening, std::string_view text) const {
    event(out, "content_block_delta", R"("index":)");
    append_json_number(out, index_);
    out += R"(,"delta":)";
    out += opening;
    append_json_string(out, text);
    out += "}}\n\n";
  }

  void stop_block(std::string& out) {
    if (block_ == Block::kNone) return;
    // Thinking goes back to its author signed; nobody checks this signature, but clients drop thoughts that have none.
    if (block_ == Block::kThinking) delta(out, R"({"type":"signature_delta","signature":)", "warmpath");
    event(out, "content_block_stop", R"("index":)");
    append_json_number(out, index_);
    out += "}\n\n";
    block_ = Block::kNone;
    ++index_;
  }

  static void append_block(std::string& out, const AnswerPart& part) {
    switch (part.kind) {
      case AnswerPart::Kind::kText:
        out += R"({"type":"text","text":)";
        append_json_string(out, part.text);
        break;
      case AnswerPart::Kind::kReasoning:
        out += R"({"type":"thinking","thinking":)";
        append_json_string(out, part.text);
        out += R"(,"signature":"warmpath")";
        break;
      case AnswerPart::Kind::kCall:
        out += R"({"type":"tool_use","id":)";
        append_json_string(out, part.id);
        out += R"(,"name":)";
        append_json_string(out, part.name);
        out += R"(,"input":)";
        out += input_object(part.text);
        break;
    }
    out += '}';
  }

  const AnswerHead head_;
  Block block_ = Block::kNone;
  int64_t index_ = 0;
  AnswerEnd end_;
};

}  // namespace

std::unique_ptr<AnswerWriter> messages_writer(AnswerHead head) {
  return std::make_unique<MessagesWriter>(std::move(head));
}

}  // namespace warmpath
