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

class ChatWriter final : public AnswerWriter {
 public:
  explicit ChatWriter(AnswerHead head)
      : head_(std::move(head)),
        chunk_head_("data: " + object_head(head_, "chat.completion.chunk") + R"(,"choices":[)") {}

  void open(std::string& out, int choice) override {
    begin_choice(out, choice);
    out += R"("role":"assistant","content":""},"logprobs":null,"finish_reason":null}])";
    end_chunk(out);
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

  void finish(std::string& out, int choice, FinishReason reason) override {
    begin_choice(out, choice);
    out += R"(},"logprobs":null,"finish_reason":)";
    out += wire_finish_reason(reason);
    out += "}]";
    end_chunk(out);
  }

  void usage(std::string& out, const AnswerUsage& usage) override {
    out += chunk_head_;
    out += R"(],"usage":)";
    append_usage(out, usage);
    out += "}\n\n";
  }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) override {
    std::string out = object_head(head_, "chat.completion");
    out += R"(,"choices":[)";
    for (size_t n = 0; n < choices.size(); ++n) {
      out += n > 0 ? R"(,{"index":)" : R"({"index":)";
      append_json_number(out, static_cast<int64_t>(n));
      out += R"(,"message":{"role":"assistant","content":)";
      append_json_string(out, choices[n].text);
      out += R"(,"refusal":null},"logprobs":)";
      if (head_.logprobs) {
        append_logprobs(out, choices[n].chances);
      } else {
        out += "null";
      }
      out += R"(,"finish_reason":)";
      out += wire_finish_reason(choices[n].reason);
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
  void end_chunk(std::string& out) const { out += head_.include_usage ? ",\"usage\":null}\n\n" : "}\n\n"; }

  const AnswerHead head_;
  const std::string chunk_head_;
};

}  // namespace

std::unique_ptr<AnswerWriter> chat_writer(AnswerHead head) { return std::make_unique<ChatWriter>(std::move(head)); }

}  // namespace warmpath
