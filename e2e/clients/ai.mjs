// Vercel's AI SDK, by the provider for OpenAI's API or the one for Anthropic's.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, jsonSchema, Output, RetryError, stepCountIs, streamText, tool } from "ai";
import { base, model as id, png, run, schema, system } from "./steps.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const name = process.argv[2];
const provider = {
  "ai-openai": () =>
    createOpenAICompatible({
      name: "ocp", baseURL: base + "/v1", apiKey: "unused", includeUsage: true, supportsStructuredOutputs: true,
    }),
  "ai-anthropic": () => createAnthropic({ baseURL: base + "/v1", apiKey: "unused" }),
}[name]();
const model = provider(id);

function take(got, result) {
  got.add(result.text);
  got.finish = result.finishReason;
  got.use(result.usage.inputTokens, result.usage.outputTokens);
}

async function takeStream(got, options, onText = () => {}) {
  const stream = streamText({ model, maxRetries: 0, onError() {}, ...options }).fullStream;
  for await (const part of stream) {
    if (part.type === "text-delta") {
      got.add(part.text);
      onText();
    }
    if (part.type === "error") throw part.error instanceof Error ? part.error : new Error(String(part.error?.message ?? part.error));
    if (part.type === "abort") throw new DOMException("aborted", "AbortError");
    if (part.type === "finish") {
      got.finish = part.finishReason;
      got.use(part.totalUsage.inputTokens, part.totalUsage.outputTokens);
    }
  }
}

const steps = {
  async streamed(got, prompt) {
    await takeStream(got, { prompt });
  },
  async whole(got, prompt) {
    take(got, await generateText({ model, prompt }));
  },
  async conversation(got, prompt) {
    const messages = [
      { role: "user", content: "one" }, { role: "assistant", content: "two" }, { role: "user", content: prompt },
    ];
    take(got, await generateText({ model, system, messages }));
  },
  async image(got, prompt) {
    const content = [{ type: "image", image: "data:image/png;base64," + png }, { type: "text", text: prompt }];
    take(got, await generateText({ model, messages: [{ role: "user", content }] }));
  },
  async tools(got, prompt) {
    const call = { toolCallId: "call_1", toolName: "weather" };
    const messages = [
      { role: "user", content: prompt },
      { role: "assistant", content: [{ type: "tool-call", ...call, input: { city: "Paris" } }] },
      { role: "tool", content: [{ type: "tool-result", ...call, output: { type: "text", value: "rain" } }] },
    ];
    take(got, await generateText({ model, messages }));
  },
  async loop(got, prompt) {
    const weather = tool({ inputSchema: jsonSchema(schema), execute: async ({ city }) => "rain in " + city });
    take(got, await generateText({ model, prompt, tools: { weather }, stopWhen: stepCountIs(3) }));
  },
  async denied(got, prompt) {
    await generateText({ model, prompt });
  },
  async limited(got, prompt) {
    await generateText({ model, prompt, maxRetries: 0 });
  },
  async retried(got, prompt) {
    take(got, await generateText({ model, prompt }));
  },
  async broken(got, prompt) {
    await takeStream(got, { prompt });
  },
  async aborted(got, prompt) {
    const abort = new AbortController();
    await takeStream(got, { prompt, abortSignal: abort.signal }, () => abort.abort());
  },
};

if (name === "ai-openai") {
  steps.structured = async (got, prompt) => {
    const result = await generateText({ model, prompt, output: Output.object({ schema: jsonSchema(schema) }) });
    got.add(JSON.stringify(result.output));
  };
}

await run(name, [APICallError, RetryError], steps);
