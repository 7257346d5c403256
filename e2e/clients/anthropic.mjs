// Anthropic's own SDK.
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { base, model, png, run, schema, system } from "./steps.mjs";

const client = new Anthropic({ baseURL: base, apiKey: "unused" });
const impatient = new Anthropic({ baseURL: base, apiKey: "unused", maxRetries: 0 });

const max_tokens = 1024;
const asking = (content) => ({ model, max_tokens, messages: [{ role: "user", content }] });

function take(got, message) {
  for (const block of message.content) got.add(block.text);
  got.finish = message.stop_reason;
  got.use(message.usage.input_tokens, message.usage.output_tokens);
}

async function takeStream(got, stream) {
  for await (const event of stream) {
    if (event.type === "content_block_delta") got.add(event.delta.text);
    if (event.type === "message_delta") {
      got.finish = event.delta.stop_reason;
      got.use(event.usage.input_tokens, event.usage.output_tokens);
    }
  }
}

await run(
  "anthropic",
  [Anthropic.AuthenticationError, Anthropic.BadRequestError, Anthropic.NotFoundError, Anthropic.RateLimitError,
    Anthropic.InternalServerError, Anthropic.APIUserAbortError, Anthropic.APIConnectionError, Anthropic.APIError],
  {
    async streamed(got, prompt) {
      await takeStream(got, await client.messages.create({ ...asking(prompt), stream: true }));
    },
    async whole(got, prompt) {
      take(got, await client.messages.create(asking(prompt)));
    },
    async helper(got, prompt) {
      const stream = client.messages.stream(asking(prompt));
      stream.on("text", (delta) => got.add(delta));
      const message = await stream.finalMessage();
      if (message.content[0].text !== got.text) throw new Error(`finalMessage is ${JSON.stringify(message)}`);
      got.finish = message.stop_reason;
      got.use(message.usage.input_tokens, message.usage.output_tokens);
    },
    async conversation(got, prompt) {
      const messages = [
        { role: "user", content: "one" }, { role: "assistant", content: "two" }, { role: "user", content: prompt },
      ];
      take(got, await client.messages.create({ model, max_tokens, system, messages }));
    },
    async image(got, prompt) {
      const source = { type: "base64", media_type: "image/png", data: png };
      take(got, await client.messages.create(asking([{ type: "image", source }, { type: "text", text: prompt }])));
    },
    async tools(got, prompt) {
      const messages = [
        { role: "user", content: prompt },
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "weather", input: { city: "Paris" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "rain" }] },
      ];
      take(got, await client.messages.create({ model, max_tokens, messages }));
    },
    async loop(got, prompt) {
      const weather = betaTool({ name: "weather", description: "", inputSchema: schema, run: ({ city }) => "rain in " + city });
      take(got, await client.beta.messages.toolRunner({ ...asking(prompt), tools: [weather] }));
    },
    async denied(got, prompt) {
      await client.messages.create(asking(prompt));
    },
    async invalid() {
      await client.messages.create({ model, max_tokens, messages: [] });
    },
    async unknown(got, prompt) {
      await client.messages.create(asking(prompt));
    },
    async limited(got, prompt) {
      await impatient.messages.create(asking(prompt));
    },
    async retried(got, prompt) {
      take(got, await client.messages.create(asking(prompt)));
    },
    async broken(got, prompt) {
      await takeStream(got, await impatient.messages.create({ ...asking(prompt), stream: true }));
    },
    async aborted(got, prompt) {
      const stream = impatient.messages.stream(asking(prompt));
      stream.on("text", (delta) => {
        got.add(delta);
        stream.abort();
      });
      await stream.finalMessage();
    },
    async count(got, prompt) {
      const { input_tokens } = await client.messages.countTokens({ model, messages: asking(prompt).messages });
      got.use(input_tokens, 0);
    },
    async models(got) {
      for await (const one of client.models.list()) got.add(one.id + "\n");
    },
  },
);
