// text_completion objects: the same shape streamed and whole.
#include <vector>

#include "router/wire/answer_writer.h"
#include "router/wire/json_writer.h"

namespace warmpath {

namespace {

template <typename Append>
void append_list(std::string& out, std::string_view name, std::span<const TokenChance> chances, Append append) {
  append_json_string(out, name);
  out += ":[";
  for (size_t n = 0; n < chances.size(); ++n) {
    if (n > 0) out += ',';
    append(chances[n]);
  }
  out += ']';
}

// `offset` is where the first token starts in the choice's text, in bytes; returns where the next one would.
int64_t append_logprobs(std::string& out, std::span<const TokenChance> chances, int64_t offset) {
  out += '{';
  append_list(out, "tokens", chances, [&](const TokenChance& chance) { append_json_string(out, chance.bytes); });
  out += ',';
  append_list(out, "token_logprobs", chances,
              [&](const TokenChance& chance) { append_json_number(out, chance.logprob); });
  out += ',';
  append_list(out, "top_logprobs", chances, [&](const TokenChance& chance) {
    out += '{';
    for (size_t rank = 0; rank < chance.top.size(); ++rank) {
      if (rank > 0) out += ',';
      append_json_string(out, chance.top[rank].first);
      out += ':';
      append_json_number(out, chance.top[rank].second);
    }
    out += '}';
  });
  out += ',';
  append_list(out, "text_offset", chances, [&](const TokenChance& chance) {
    append_json_number(out, offset);
    offset += static_cast<int64_t>(chance.bytes.size());
  });
  out += '}';
  return offset;
}

class CompletionWriter final : public AnswerWriter {
 public:
  explicit CompletionWriter(AnswerHead head)
      : head_(std::move(head)), object_(object_head(head_, "text_completion") + R"(,"choices":[)") {}

  void open(std::string&, int, const AnswerUsage&) override {}  // this wire has no opening chunk
  // Its answers are text and nothing else: they are not parsed.
  void reasoning(std::string&, int, std::string_view) override {}
  void call(std::string&, int, std::string_view, std::string_view) override {}
  void arguments(std::string&, int, std::string_view) override {}
  void end_call(std::string&, int) override {}

  void text(std::string& out, int choice, std::string_view text, std::span<const TokenChance> chances) override {
    out += "data: ";
    out += object_;
    append_choice(out, choice, text, chances, "null");
    end_chunk(out);
  }

  void finish(std::string& out, int choice, const AnswerEnd& end) override {
    out += "data: ";
    out += object_;
    append_choice(out, choice, "", {}, wire_finish_reason(end));
    end_chunk(out);
  }

  void close(std::string& out, const AnswerUsage& usage) override {
    if (head_.include_usage) {
      out += "data: ";
      out += object_;
      out += R"(],"usage":)";
      append_usage(out, usage);
      out += "}\n\n";
    }
    out += "data: [DONE]\n\n";
  }

  std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) override {
    std::string out = object_;
    for (size_t n = 0; n < choices.size(); ++n) {
      if (n > 0) out += ',';
      const AnswerChoice& choice = choices[n];
      const std::string_view text = choice.parts.empty() ? std::string_view() : choice.parts.front().text;
      append_choice(out, static_cast<int>(n), text, choice.chances, wire_finish_reason(choice.end));
    }
    out += R"(],"usage":)";
    append_usage(out, usage);
    out += '}';
    return out;
  }

 private:
  void append_choice(std::string& out, int choice, std::string_view text, std::span<const TokenChance> chances,
                     std::string_view finish_reason) {
    out += R"({"text":)";
    append_json_string(out, text);
    out += R"(,"index":)";
    append_json_number(out, static_cast<int64_t>(choice));
    out += R"(,"logprobs":)";
    if (head_.logprobs) {
      if (offsets_.size() <= static_cast<size_t>(choice)) offsets_.resize(static_cast<size_t>(choice) + 1);
      int64_t& offset = offsets_[static_cast<size_t>(choice)];
      offset = append_logprobs(out, chances, offset);
    } else {
      out += "null";
    }
    out += R"(,"finish_reason":)";
    out += finish_reason;
    out += '}';
  }
  void end_chunk(std::string& out) const { out += head_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n"; }

  const AnswerHead head_;
  const std::string object_;
  std::vector<int64_t> offsets_;  // per choice: bytes of text whose tokens were shown
};

}  // namespace

std::unique_ptr<AnswerWriter> completion_writer(AnswerHead head) {
  return std::make_unique<CompletionWriter>(std::move(head));
}

}  // namespace warmpath
