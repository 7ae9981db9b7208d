// chat.completion and chat.completion.chunk objects.
#include "router/wire/answer_writer.h"
#include "router/wire/json_writer.h"

namespace warmpath {

namespace {

void append_bytes(std::string& out, std::string_view bytes) {
  out += '[';
  for (size_t n = 0; n < bytes.size(); ++n) {
    if (n > 0) out += ',';
    append_json_number(out, static_cast<int64_t>(static_cast<uint8_t>(bytes[n])));
  }
  out += ']';
}

// `"token":...,"logprob":...,"bytes":[...]`
void append_chance(std::string& out, std::string_view bytes, float logprob) {
  out += R"("token":)";
  append_json_string(out, bytes);
  out += R"(,"logprob":)";
  append_json_number(out, logprob);
  out += R"(,"bytes":)";
  append_bytes(out, bytes);
}

void append_logprobs(std::string& out, std::span<const TokenChance> chances) {
  out += R"({"content":[)";
  for (size_t n = 0; n < chances.size(); ++n) {
    out += n > 0 ? ",{" : "{";
    append_chance(out, chances[n].bytes, chances[n].logprob);
    out += R"(,"top_logprobs":[)";
    for (size_t rank = 0; rank < chances[n].top.size(); ++rank) {
      out += rank > 0 ? ",{" : "{";
      append_chance(out, chances[n].top[rank].first, chances[n].top[rank].second);
      out += '}';
    }
    out += "]}";
  }
  out += R"(],"refusal":null})";
}

// `"id":...,"type":"function","function":{"name":...,"arguments":`
void append_call_head(std::string& out, std::string_view id, std::string_view name) {
  out += R"("id":)";
  append_json_string(out, id);
  out += R"(,"type":"function","function":{"name":)";
  append_json_string(out, name);
  out += R"(,"arguments":)";
}

// The message of a whole answer: texts joined, and null where there are only calls.
void append_message(std::string& out, const AnswerChoice& choice) {
  std::string text;
  std::string reasoning;
  std::string calls;
  for (const AnswerPart& part : choice.parts) {
    if (part.kind == AnswerPart::Kind::kText) {
      text += part.text;
    } else if (part.kind == AnswerPart::Kind::kReasoning) {
      reasoning += part.text;
    } else {
      calls += calls.empty() ? "{" : ",{";
      append_call_head(calls, part.id, part.name);
      append_json_string(calls, part.text);
      calls += "}}";
    }
  }
  out += R"({"role":"assistant","content":)";
  if (text.empty() && !calls.empty()) {
    out += "null";
  } else {
    append_json_string(out, text);
  }
  out += R"(,"refusal":null)";
  if (!reasoning.empty()) {
    out += R"(,"reasoning_content":)";
    append_json_string(out, reasoning);
  }
  if (!calls.empty()) out += R"(,"tool_calls":[)" + calls + "]";
  out += '}';
}

class ChatWriter final : public AnswerWriter {
 public:
  explicit ChatWriter(AnswerHead head)
      : head_(std::move(head)),
        chunk_head_("data: " + object_head(head_, "chat.completion.chunk") + R"(,"choices":[)") {}

  void open(std::string& out, int choices, const AnswerUsage&) override {
    calls_.resize(static_cast<size_t>(choices));
    for (int choice = 0; choice < choices; ++choice) {
      begin_choice(out, choice);
      out += R"("role":"assistant","content":"")";
      end_delta(out);
    }
  }

  void text(std::string& out, int choice, std::string_view text, std::span<const TokenChance> chances) override {
    begin_choice(out, choice);
    out += R"("content":)";
    append_json_string(out, text);
    out += R"(},"logprobs":)";
    if (head_.logprobs && !chances.empty()) {
      append_logprobs(out, chances);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":null}])";
    end_chunk(out);
  }

  void reasoning(std::string& out, int choice, std::string_view text) override {
    begin_choice(out, choice);
    out += R"("reasoning_content":)";
    append_json_string(out, text);
    end_delta(out);
  }

  void call(std::string& out, int choice, std::string_view id, std::string_view name) override {
    ++calls_[static_cast<size_t>(choice)];
    begin_call_delta(out, choice);
    append_call_head(out, id, name);
    out += "\"\"}}]";
    end_delta(out);
  }

  // The later deltas of a call name neither id nor function, not even as null: clients take a null for the name.
  void arguments(std::string& out, int choice, std::string_view json) override {
    begin_call_delta(out, choice);
    out += R"("function":{"arguments":)";
    append_json_string(out, json);
    out += "}}]";
    end_delta(out);
  }

  void end_call(std::string&, int) override {}  // the next call's index, or the finish reason, says so

  void finish(std::string& out, int choice, const AnswerEnd& end) override {
    begin_choice(out, choice);
    out += R"(},"logprobs":null,"finish_reason":)";
    out += wire_finish_reason(end);
    out += "}]";
    end_chunk(out);
  }

  void close(std::string& out, const AnswerUsage& usage) override {
    if (head_.include_usage) {
      out += chunk_head_;
      out += R"(],"usage":)";
      append_usage(out, usage);
      out += "}\n\n";
    }
    out += "data: [DONE]\n\n";
  }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) override {
    std::string out = object_head(head_, "chat.completion");
    out += R"(,"choices":[)";
    for (size_t n = 0; n < choices.size(); ++n) {
      out += n > 0 ? R"(,{"index":)" : R"({"index":)";
      append_json_number(out, static_cast<int64_t>(n));
      out += R"(,"message":)";
      append_message(out, choices[n]);
      out += R"(,"logprobs":)";
      if (head_.logprobs) {
        append_logprobs(out, choices[n].chances);
      } else {
        out += "null";
      }
      out += R"(,"finish_reason":)";
      out += wire_finish_reason(choices[n].end);
      out += '}';
    }
    out += R"(],"usage":)";
    append_usage(out, usage);
    out += '}';
    return out;
  }

 private:
  void begin_choice(std::string& out, int choice) const {
    out += chunk_head_;
    out += R"({"index":)";
    append_json_number(out, static_cast<int64_t>(choice));
    out += R"(,"delta":{)";
  }
  void end_delta(std::string& out) const {
    out += R"(},"logprobs":null,"finish_reason":null}])";
    end_chunk(out);
  }
  // Of the choice's latest call.
  void begin_call_delta(std::string& out, int choice) const {
    begin_choice(out, choice);
    out += R"("tool_calls":[{"index":)";
    append_json_number(out, calls_[static_cast<size_t>(choice)] - 1);
    out += ',';
  }
  void end_chunk(std::string& out) const { out += head_.include_usage ? ",\"usage\":null}\n\n" : "}\n\n"; }

  const AnswerHead head_;
  const std::string chunk_head_;
  std::vector<int64_t> calls_;  // begun, per choice
};

}  // namespace

std::unique_ptr<AnswerWriter> chat_writer(AnswerHead head) { return std::make_unique<ChatWriter>(std::move(head)); }

}  // namespace warmpath
