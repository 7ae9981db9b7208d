// The official OpenAI client for Node.js against a running warmpath gateway: node client.mjs BASE_URL
import OpenAI from "openai";
import { readFileSync } from "node:fs";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0, timeout: 120_000 });
const messages = [
  { role: "system", content: "You answer briefly." },
  { role: "user", content: "What is the capital of Italy?" },
];
let checks = 0;

function check(condition, what) {
  ++checks;
  if (!condition) throw new Error(`FAILED: ${what}`);
}

async function refused(kind, what, request) {
  try {
    await client.chat.completions.create({ model, messages, ...request });
  } catch (error) {
    check(error instanceof kind, `${what}: ${error}`);
    return error;
  }
  throw new Error(`FAILED: ${what}: accepted`);
}

const models = [];
for await (const found of client.models.list()) models.push(found);
check(models.length > 0, "models.list finds a model");
const model = models[0].id;
check((await client.models.retrieve(model)).id === model, "models.retrieve");

const reply = await client.chat.completions.create({ model, messages, max_tokens: 12, temperature: 0 });
const text = reply.choices[0].message.content;
check(reply.object === "chat.completion" && text, "chat: content");
check(reply.usage.total_tokens === reply.usage.prompt_tokens + reply.usage.completion_tokens, "chat: usage adds up");
const again = await client.chat.completions.create({ model, messages, max_tokens: 12, temperature: 0 });
check(again.choices[0].message.content === text, "chat: a cache hit gives the same answer as the miss");
check(again.usage.prompt_tokens_details.cached_tokens > 0, "chat: the second time is cached");

let streamed = "", last;
const stream = await client.chat.completions.create({
  model, messages, max_completion_tokens: 12, temperature: 0, stream: true, stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  last = chunk;
}
check(streamed === text, "stream: same text as whole");
check(last.usage && last.choices.length === 0, "stream: usage comes last, without choices");

const left = await client.chat.completions.create({ model, messages, max_tokens: 400, stream: true });
for await (const _ of left) break; // leaves in the middle; the next request must not wait for it
const parts = await client.chat.completions.create({
  model, max_tokens: 4, messages: [{ role: "user", content: [{ type: "text", text: "Say " }, { type: "text", text: "hello." }] }],
});
check(parts.choices.length === 1, "content as text parts");

const whole = await client.completions.create({ model, prompt: "Once upon a time", max_tokens: 8, temperature: 0 });
let piecewise = "";
for await (const chunk of await client.completions.create({ model, prompt: "Once upon a time", max_tokens: 8, temperature: 0, stream: true })) {
  piecewise += chunk.choices[0]?.text ?? "";
}
check(whole.choices[0].text && piecewise === whole.choices[0].text, "completions: stream equals whole");

await refused(OpenAI.NotFoundError, "unknown model", { model: "no-such-model" });
check((await refused(OpenAI.BadRequestError, "temperature 3", { temperature: 3 })).param === "temperature", "param is named");
await refused(OpenAI.BadRequestError, "response_format", { response_format: { type: "xml" } });
const overflow = await refused(OpenAI.BadRequestError, "overflow", { messages: [{ role: "user", content: "word ".repeat(20000) }] });
check(overflow.code === "context_length_exceeded", "overflow: code");

const version = JSON.parse(readFileSync(new URL("./node_modules/openai/package.json", import.meta.url))).version;
console.log(`openai for Node.js ${version}: ${checks} checks passed`);
