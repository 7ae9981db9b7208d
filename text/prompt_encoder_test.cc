// Incremental prompts: what the caches give must be what a fresh tokenizer gives for the whole text.
#include "text/prompt_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "text/mixed_text_for_test.h"
#include "text/vocabulary_for_test.h"

namespace warmpath {
namespace {

struct Model {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
};

Model synthetic_model() {
  Vocabulary vocabulary = synthetic_vocabulary();
  const std::string source = vocabulary.chat_template;
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  auto compiled = ChatTemplate::compile(source, "<|im_start|>", "<|im_end|>");
  EXPECT_TRUE(tokenizer.ok() && compiled.ok());
  return {*tokenizer, *compiled};
}

// The default model's tokenizer where it is at hand: real merges make wrong cuts visible.
Model real_model() {
  const auto path = find_vocabulary("smollm");
  if (!path) return synthetic_model();
  const auto file = GgufFile::open(*path);
  EXPECT_TRUE(file.ok());
  auto vocabulary = vocabulary_from_gguf(*file);
  EXPECT_TRUE(vocabulary.ok());
  const std::string source = vocabulary->chat_template;
  return {*Tokenizer::create(*std::move(vocabulary)), *ChatTemplate::compile(source, "<|im_start|>", "<|im_end|>")};
}

// Pieces of the rendering, control tokens looked up by their text where the template wrote them, everything else plain.
std::vector<TokenId> encode_slowly(const Model& model, const MarkedText& text) {
  std::vector<TokenId> ids;
  std::string run;
  const auto flush = [&] {
    const auto more = *model.tokenizer->encode(run);
    ids.insert(ids.end(), more.begin(), more.end());
    run.clear();
  };
  for (size_t at = 0; at < text.parts().size(); ++at) {
    std::string part(text.parts()[at].bytes);
    if (text.parts()[at].origin == Origin::kMessage) {
      run += part;
      continue;
    }
    while (at + 1 < text.parts().size() && text.parts()[at + 1].origin == Origin::kTemplate)
      part += text.parts()[++at].bytes;
    for (size_t from = 0; from < part.size();) {
      const auto match = model.tokenizer->find_special(part, from, SpecialTokens::kParse);
      run += part.substr(from, match ? match->begin - from : std::string::npos);
      if (!match) break;
      flush();
      ids.push_back(match->id);
      from = match->end;
    }
  }
  flush();
  return ids;
}

TEST(PromptEncoder, GrowingSessionsEncodeAsAFreshTokenizerDoes) {
  const Model model = real_model();
  // Small enough that entries are evicted all the time.
  PromptEncoder encoder(model.tokenizer, model.chat_template, {.cache_bytes = 4 << 20});
  std::mt19937 random(3);
  size_t encoded = 0;
  size_t total = 0;
  for (int session = 0; session < 8; ++session) {
    Conversation conversation;
    if (session % 2 == 0) conversation.add_message("system", MixedText::document(1000, 1, 30'000));
    for (int turn = 0; turn < 12; ++turn) {
      const std::string role = turn % 2 == 0 ? "user" : "assistant";
      conversation.add_message(role, MixedText::document(random() % 50, 2, 1 + random() % 3000));
      const auto prompt = encoder.encode_conversation(conversation);
      ASSERT_TRUE(prompt.ok()) << prompt.status().message();
      const auto text = model.chat_template->render(conversation);
      ASSERT_TRUE(text.ok());
      ASSERT_EQ(prompt->tokens, encode_slowly(model, *text)) << "session " << session << " turn " << turn;
      ASSERT_EQ(prompt->text_bytes, text->size());
      encoded += prompt->encoded_bytes;
      total += prompt->text_bytes;
    }
  }
  EXPECT_LT(encoded, total / 2);
  EXPECT_LE(encoder.stats().cache_bytes, size_t{4} << 20);
  std::cout << total << " bytes of prompts, " << encoded << " of them tokenized\n";
}

TEST(PromptEncoder, CutsOfLongTextsChangeNoToken) {
  const Model model = real_model();
  PromptEncoder encoder(model.tokenizer, nullptr, {});
  for (uint64_t index = 0; index < 12; ++index) {
    const std::string text = MixedText::document(index, 5, 60'000);
    const EncodedPrompt prompt = *encoder.encode_completion(text);
    ASSERT_EQ(prompt.tokens, *model.tokenizer->encode(text)) << "document " << index;
    // Grown by a line: most of it is remembered.
    const EncodedPrompt grown = *encoder.encode_completion(text + "\nx and more\n");
    ASSERT_EQ(grown.tokens, *model.tokenizer->encode(text + "\nx and more\n"));
  }
}

// Prompts of a session that grows by two messages a turn, against the slow way; which of them the memory extended.
PromptEncoder::Stats grow(const Model& model, const std::string& source) {
  const Model other{model.tokenizer, *ChatTemplate::compile(source, "<|im_start|>", "<|im_end|>")};
  PromptEncoder encoder(other.tokenizer, other.chat_template, {});
  Conversation conversation;
  conversation.add_message("system", MixedText::document(7, 1, 6000));
  for (uint64_t turn = 0; turn < 12; ++turn) {
    conversation.add_message("user", MixedText::document(turn, 2, 700));
    const auto prompt = encoder.encode_conversation(conversation);
    EXPECT_TRUE(prompt.ok());
    EXPECT_EQ(prompt->tokens, encode_slowly(other, *other.chat_template->render(conversation))) << "turn " << turn;
    conversation.add_message("assistant", "thought" + MixedText::document(turn, 3, 900));
  }
  return encoder.stats();
}

TEST(PromptEncoder, ATurnExtendsThePromptBeforeItUnlessTheTemplateRewritesIt) {
  const Model model = real_model();
  const PromptEncoder::Stats appending = grow(model, synthetic_vocabulary().chat_template);
  EXPECT_EQ(appending.extended_prompts, 11u);
  EXPECT_EQ(appending.fresh_prompts, 1u);
  // Drops all answers but the last two, as templates drop earlier reasoning: each turn differs from the one before.
  const PromptEncoder::Stats rewriting =
      grow(model,
           "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content if loop.revindex < 5 or m.role != "
           "'assistant' else "
           "m.content[:7] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  EXPECT_GT(rewriting.restarted_prompts, 6u);
}

TEST(PromptEncoder, ControlTokenTextInAMessageStaysDataUnlessAskedOtherwise) {
  const Model model = synthetic_model();
  Conversation conversation;
  conversation.add_message("user", "a<|im_end|>b");
  const TokenId end = *model.tokenizer->special_token("<|im_end|>");
  const auto count = [end](const EncodedPrompt& prompt) {
    return std::count(prompt.tokens.begin(), prompt.tokens.end(), end);
  };
  PromptEncoder careful(model.tokenizer, model.chat_template, {});
  EXPECT_EQ(count(*careful.encode_conversation(conversation)), 1);
  PromptEncoder parsing(model.tokenizer, model.chat_template, {.message_specials = SpecialTokens::kParse});
  EXPECT_EQ(count(*parsing.encode_conversation(conversation)), 2);
}

TEST(PromptEncoder, ToolsReachATemplateThatKnowsNone) {
  const Model model = synthetic_model();
  PromptEncoder encoder(model.tokenizer, model.chat_template, {});
  const auto conversation =
      conversation_from_json(R"({"tools": [{"type": "function", "function": {"name": "read", "x": 1.50}}],
      "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "p1"},
        {"type": "text", "text": "p2"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "read", "arguments": {"a": 1}}}]},
        {"role": "tool", "tool_call_id": "1", "content": "R1"}, {"role": "tool", "tool_call_id": "2", "content": "R2"}]})");
  ASSERT_TRUE(conversation.ok()) << conversation.status().message();
  const auto prompt = encoder.encode_conversation(*conversation);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_TRUE(prompt->default_tools);
  const std::string text = model.tokenizer->decode(prompt->tokens);
  EXPECT_NE(text.find("<|im_start|>system\nS\n\n# Tools"), std::string::npos) << text;
  EXPECT_NE(text.find("\n{\"name\": \"read\", \"x\": 1.5}\n</tools>"), std::string::npos) << text;
  EXPECT_NE(text.find("<|im_start|>user\np1\np2<|im_end|>"), std::string::npos) << text;
  EXPECT_NE(text.find("<tool_call>{\"name\": \"read\", \"arguments\": {\"a\": 1}}</tool_call>"), std::string::npos)
      << text;
  EXPECT_NE(text.find("user\n<tool_response>R1</tool_response>\n<tool_response>R2</tool_response><|im_end|>"),
            std::string::npos)
      << text;
}

TEST(PromptEncoder, AnImageForATextModelIsRefusedByPlace) {
  const Model model = synthetic_model();
  PromptEncoder encoder(model.tokenizer, model.chat_template, {});
  const auto conversation = conversation_from_json(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]})");
  const auto prompt = encoder.encode_conversation(*conversation);
  ASSERT_FALSE(prompt.ok());
  EXPECT_NE(prompt.status().message().find("messages[0].content[0] is a part of type 'image_url'"), std::string::npos);
}

TEST(MessageCache, ReadsOnceAndParsesArguments) {
  MessageCache cache(1 << 20);
  const std::string json =
      R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":[1,2]}"}}]})";
  const auto first = cache.read(json);
  ASSERT_TRUE(first.ok());
  const auto again = cache.read(json);
  EXPECT_EQ(first->as_node(), again->as_node());
  EXPECT_EQ(cache.stats().hits, 1u);
  const Value& call = first->find("tool_calls")->as_list().items[0];
  EXPECT_TRUE(call.find("function")->find("arguments")->is_dict());
  EXPECT_FALSE(cache.read("[1]").ok());
  EXPECT_FALSE(cache.read("{\"role\":").ok());
}

TEST(PromptEncoder, ManyThreadsShareOne) {
  const Model model = synthetic_model();
  PromptEncoder encoder(model.tokenizer, model.chat_template,
                        {.cache_bytes = 64 << 10, .message_cache_bytes = 64 << 10});
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t round = 0; round < 40; ++round) {
        Conversation conversation;
        conversation.add_message("user", MixedText::document((thread + round) % 7, 9, 2000));
        const auto prompt = encoder.encode_conversation(conversation);
        ASSERT_TRUE(prompt.ok());
        ASSERT_EQ(prompt->tokens, encode_slowly(model, *model.chat_template->render(conversation)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace warmpath
