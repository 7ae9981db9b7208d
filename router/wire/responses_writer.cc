// The responses wire's objects and events: a response is a row of output items (messages, reasoning, calls), each
// added, filled and done; the last event repeats the whole response.
#include "router/wire/answer_writer.h"
#include "router/wire/json_writer.h"
#include "text/answer/json_scanner.h"
#include "text/json_value.h"

namespace warmpath {

namespace {

std::string quoted(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

// {"input": "..."} -> the string. Whatever else the model wrote goes out as it is.
std::string custom_input(std::string_view arguments) {
  const Result<Value> parsed = value_from_json(arguments);
  const Value* input = parsed.ok() ? parsed->find("input") : nullptr;
  return input != nullptr && input->is_string() ? input->string_or_empty() : std::string(arguments);
}

std::string usage_json(const AnswerUsage& usage) {
  std::string out = R"({"input_tokens":)";
  append_json_number(out, usage.prompt_tokens);
  out += R"(,"input_tokens_details":{"cached_tokens":)";
  append_json_number(out, usage.cached_tokens);
  out += R"(},"output_tokens":)";
  append_json_number(out, usage.completion_tokens);
  out += R"(,"output_tokens_details":{"reasoning_tokens":)";
  append_json_number(out, usage.reasoning_tokens);
  out += R"(},"total_tokens":)";
  append_json_number(out, usage.prompt_tokens + usage.completion_tokens);
  return out + "}";
}

class ResponsesWriter final : public AnswerWriter {
 public:
  explicit ResponsesWriter(AnswerHead head)
      : head_(std::move(head)), id_tail_(head_.id.substr(head_.id.find('_') + 1)) {}

  void open(std::string& out, int, const AnswerUsage&) override {
    for (const char* type : {"response.created", "response.in_progress"}) response_event(out, type, "in_progress", {});
  }

  void text(std::string& out, int, std::string_view text, std::span<const TokenChance>) override {
    begin(out, AnswerPart::Kind::kText);
    item_.text += text;
    event(out, "response.output_text.delta", R"(,"content_index":0,"delta":)" + quoted(text) + R"(,"logprobs":[])");
  }

  void reasoning(std::string& out, int, std::string_view text) override {
    begin(out, AnswerPart::Kind::kReasoning);
    item_.text += text;
    event(out, "response.reasoning_summary_text.delta", R"(,"summary_index":0,"delta":)" + quoted(text));
  }

  void call(std::string& out, int, std::string_view id, std::string_view name) override {
    end_item(out);
    item_.id = id;
    item_.name = name;
    begin(out, AnswerPart::Kind::kCall);
  }

  void arguments(std::string& out, int, std::string_view json) override {
    item_.text += json;
    // A custom tool's input is inside the JSON: it goes out when that is whole.
    if (!tool_.custom) event(out, "response.function_call_arguments.delta", R"(,"delta":)" + quoted(json));
  }

  void end_call(std::string& out, int) override { end_item(out); }

  void finish(std::string& out, int, const AnswerEnd& end) override {
    end_item(out);
    end_ = end;
  }

  void close(std::string& out, const AnswerUsage& usage) override {
    const bool whole = end_.reason == FinishReason::kStop;
    response_event(out, whole ? "response.completed" : "response.incomplete", whole ? "completed" : "incomplete",
                   usage_json(usage));
  }

  // Codex's timers take only events that have data.
  void keep_alive(std::string& out) override { response_event(out, "response.in_progress", "in_progress", {}); }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) override {
    for (const AnswerPart& part : choices[0].parts) {
      item_ = part;
      if (part.kind == AnswerPart::Kind::kCall) tool_ = tool_of(part.name);
      keep(item_json("completed", true));
    }
    end_ = choices[0].end;
    return response_json(end_.reason == FinishReason::kStop ? "completed" : "incomplete", usage_json(usage));
  }

 private:
  ResponseTools::Tool tool_of(std::string_view name) const {
    return head_.tools ? head_.tools->find(name) : ResponseTools::Tool{std::string(name), {}, false};
  }

  // --- Items.
  void begin(std::string& out, AnswerPart::Kind kind) {
    if (open_ && item_.kind == kind && kind != AnswerPart::Kind::kCall) return;
    if (kind != AnswerPart::Kind::kCall) end_item(out);
    open_ = true;
    item_.kind = kind;
    if (kind == AnswerPart::Kind::kCall) tool_ = tool_of(item_.name);
    plain_event(out, "response.output_item.added", R"(,"item":)" + item_json("in_progress", false));
    if (kind == AnswerPart::Kind::kText) {
      event(out, "response.content_part.added", R"(,"content_index":0,"part":)" + text_part(""));
    } else if (kind == AnswerPart::Kind::kReasoning) {
      event(out, "response.reasoning_summary_part.added", R"(,"summary_index":0,"part":)" + summary_part(""));
    }
  }

  void end_item(std::string& out) {
    if (!open_) return;
    switch (item_.kind) {
      case AnswerPart::Kind::kText:
        event(out, "response.output_text.done",
              R"(,"content_index":0,"text":)" + quoted(item_.text) + R"(,"logprobs":[])");
        event(out, "response.content_part.done", R"(,"content_index":0,"part":)" + text_part(item_.text));
        break;
      case AnswerPart::Kind::kReasoning:
        event(out, "response.reasoning_summary_text.done", R"(,"summary_index":0,"text":)" + quoted(item_.text));
        event(out, "response.reasoning_summary_part.done", R"(,"summary_index":0,"part":)" + summary_part(item_.text));
        break;
      case AnswerPart::Kind::kCall:
        if (tool_.custom) {
          const std::string input = quoted(custom_input(item_.text));
          event(out, "response.custom_tool_call_input.delta", R"(,"delta":)" + input);
          event(out, "response.custom_tool_call_input.done", R"(,"input":)" + input);
        } else {
          event(out, "response.function_call_arguments.done",
                R"(,"name":)" + quoted(tool_.name) + R"(,"arguments":)" + quoted(item_.text));
        }
        break;
    }
    std::string item = item_json("completed", true);
    plain_event(out, "response.output_item.done", R"(,"item":)" + item);
    keep(item);
    open_ = false;
    item_ = {};
  }

  void keep(const std::string& item) {
    if (items_ > 0) output_ += ',';
    output_ += item;
    ++items_;
  }

  std::string item_id() const {
    std::string id;
    switch (item_.kind) {
      case AnswerPart::Kind::kText:
        id = "msg_";
        break;
      case AnswerPart::Kind::kReasoning:
        id = "rs_";
        break;
      case AnswerPart::Kind::kCall:
        id = tool_.custom ? "ctc_" : "fc_";
        break;
    }
    id += id_tail_;
    id += '_';
    append_json_number(id, items_);
    return id;
  }

  static std::string text_part(std::string_view text) {
    return R"({"type":"output_text","text":)" + quoted(text) + R"(,"annotations":[],"logprobs":[]})";
  }
  static std::string summary_part(std::string_view text) {
    return R"({"type":"summary_text","text":)" + quoted(text) + "}";
  }

  std::string item_json(std::string_view status, bool filled) const {
    std::string out = R"({"id":)" + quoted(item_id());
    const std::string_view text = filled ? std::string_view(item_.text) : std::string_view();
    switch (item_.kind) {
      case AnswerPart::Kind::kText:
        out += R"(,"type":"message","role":"assistant","content":[)" + (filled ? text_part(text) : "") + "]";
        break;
      case AnswerPart::Kind::kReasoning:
        out += R"(,"type":"reasoning","summary":[)" + (filled ? summary_part(text) : "") + "]";
        break;
      case AnswerPart::Kind::kCall:
        out += R"(,"type":")" + std::string(tool_.custom ? "custom_tool_call" : "function_call") + R"(","call_id":)" +
               quoted(item_.id) + R"(,"name":)" + quoted(tool_.name);
        if (!tool_.name_space.empty()) out += R"(,"namespace":)" + quoted(tool_.name_space);
        out += tool_.custom ? R"(,"input":)" + quoted(filled ? custom_input(text) : "")
                            : R"(,"arguments":)" + quoted(text);
        break;
    }
    out += R"(,"status":")";
    out += status;
    return out + "\"}";
  }

  // --- Events. One that belongs to the item at hand also names its id.
  void event(std::string& out, std::string_view type, const std::string& more) {
    plain_event(out, type, R"(,"item_id":)" + quoted(item_id()) + more);
  }
  void plain_event(std::string& out, std::string_view type, const std::string& more) {
    begin_event(out, type);
    out += R"(,"output_index":)";
    append_json_number(out, items_);
    out += more;
    out += "}\n\n";
  }
  void begin_event(std::string& out, std::string_view type) {
    out += "event: ";
    out += type;
    out += "\ndata: {\"type\":\"";
    out += type;
    out += R"(","sequence_number":)";
    append_json_number(out, sequence_++);
  }
  void response_event(std::string& out, std::string_view type, std::string_view status, const std::string& usage) {
    begin_event(out, type);
    out += R"(,"response":)";
    out += response_json(status, usage);
    out += "}\n\n";
  }

  std::string response_json(std::string_view status, const std::string& usage) const {
    std::string out = R"({"id":)" + quoted(head_.id) + R"(,"object":"response","created_at":)";
    append_json_number(out, head_.created);
    out += R"(,"status":")";
    out += status;
    out += R"(","background":false,"error":null,"incomplete_details":)";
    out += status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null";
    out += R"(,"instructions":null,"max_output_tokens":null,"model":)" + quoted(head_.model);
    out += R"(,"output":[)" + (status == "in_progress" ? "" : output_);
    out += R"(],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null})";
    out += R"(,"store":false,"temperature":null,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[])";
    out += R"(,"top_p":null,"truncation":"disabled","usage":)" + (usage.empty() ? "null" : usage);
    return out + R"(,"user":null,"metadata":{}})";
  }

  const AnswerHead head_;
  const std::string id_tail_;
  int64_t sequence_ = 0;
  bool open_ = false;
  AnswerPart item_;           // being written
  ResponseTools::Tool tool_;  // of an item that is a call
  int64_t items_ = 0;         // done
  std::string output_;        // their JSON
  AnswerEnd end_;
};

}  // namespace

std::unique_ptr<AnswerWriter> responses_writer(AnswerHead head) {
  return std::make_unique<ResponsesWriter>(std::move(head));
}

}  // namespace warmpath
