// The official Anthropic client for Node.js against a running warmpath gateway: node anthropic.mjs BASE_URL
import Anthropic from "@anthropic-ai/sdk";
import { readFileSync } from "node:fs";

const client = new Anthropic({ baseURL: process.argv[2].replace(/\/v1$/, ""), apiKey: "unused", maxRetries: 0, timeout: 120_000 });
const messages = [{ role: "user", content: "What is the capital of Italy?" }];
let checks = 0;

function check(condition, what) {
  ++checks;
  if (!condition) throw new Error(`FAILED: ${what}`);
}

async function refused(kind, what, request) {
  try {
    await client.messages.create({ model, max_tokens: 8, messages, ...request });
  } catch (error) {
    check(error instanceof kind, `${what}: ${error}`);
    return error;
  }
  throw new Error(`FAILED: ${what}: accepted`);
}

const models = [];
for await (const found of client.models.list()) models.push(found);
check(models.length > 0 && models[0].created_at, "models.list finds a model");
const model = models[0].id;

const request = { model, max_tokens: 12, temperature: 0, system: "You answer briefly.", messages };
const reply = await client.messages.create(request);
const text = reply.content.map((block) => block.text).join("");
check(reply.type === "message" && reply.role === "assistant" && text, "a message with text");
check(["end_turn", "max_tokens"].includes(reply.stop_reason), "stop_reason");
const again = await client.messages.create(request);
check(again.usage.cache_read_input_tokens > 0, "the second time is read from the cache");
const input = (usage) => usage.input_tokens + usage.cache_read_input_tokens;
check(input(again.usage) === input(reply.usage), "all input is counted, cached or not");

const stream = client.messages.stream(request);
let streamed = "";
stream.on("text", (delta) => (streamed += delta));
const final = await stream.finalMessage();
check(streamed === text, "stream: same text as whole");
check(final.usage.output_tokens === reply.usage.output_tokens, "stream: usage");

const counted = await client.messages.countTokens({ model, system: request.system, messages });
check(counted.input_tokens === input(reply.usage), "count_tokens counts what is sent");
const blocks = await client.messages.create({
  model, max_tokens: 4,
  messages: [
    ...messages,
    { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: { at: "map" } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "Rome" }] }] },
  ],
  tools: [{ name: "look", input_schema: { type: "object", properties: { at: { type: "string" } } } }],
});
check(blocks.usage.output_tokens > 0, "tool_use and tool_result blocks");

await refused(Anthropic.NotFoundError, "unknown model", { model: "no-such-model" });
await refused(Anthropic.BadRequestError, "an image", {
  messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }] }],
});
const overflow = await refused(Anthropic.BadRequestError, "overflow", { messages: [{ role: "user", content: "word ".repeat(20000) }] });
check(/prompt is too long: \d+ tokens > \d+ maximum/.test(overflow.message), "overflow: the words that agents look for");

const version = JSON.parse(readFileSync(new URL("./node_modules/@anthropic-ai/sdk/package.json", import.meta.url))).version;
console.log(`@anthropic-ai/sdk for Node.js ${version}: ${checks} checks passed`);
