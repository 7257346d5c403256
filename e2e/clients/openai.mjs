// OpenAI's own SDK: chat completions and responses.
import OpenAI from "openai";
import { base, model, png, run, schema, system } from "./steps.mjs";

const client = new OpenAI({ baseURL: base + "/v1", apiKey: "unused" });
const impatient = new OpenAI({ baseURL: base + "/v1", apiKey: "unused", maxRetries: 0 });

const user = (content) => [{ role: "user", content }];

function take(got, completion) {
  const [choice] = completion.choices;
  got.add(choice.message.content);
  got.finish = choice.finish_reason;
  got.use(completion.usage.prompt_tokens, completion.usage.completion_tokens);
}

async function takeStream(got, stream) {
  for await (const chunk of stream) {
    got.add(chunk.choices[0]?.delta.content);
    got.finish = chunk.choices[0]?.finish_reason ?? got.finish;
    if (chunk.usage) got.use(chunk.usage.prompt_tokens, chunk.usage.completion_tokens);
  }
}

const streamed = (prompt, more) =>
  impatient.chat.completions.create(
    { model, messages: user(prompt), stream: true, stream_options: { include_usage: true } },
    more,
  );

await run(
  "openai",
  [OpenAI.AuthenticationError, OpenAI.BadRequestError, OpenAI.NotFoundError, OpenAI.RateLimitError,
    OpenAI.InternalServerError, OpenAI.APIUserAbortError, OpenAI.APIConnectionError, OpenAI.APIError],
  {
    async streamed(got, prompt) {
      await takeStream(got, await streamed(prompt));
    },
    async whole(got, prompt) {
      take(got, await client.chat.completions.create({ model, messages: user(prompt) }));
    },
    async helper(got, prompt) {
      const stream = client.chat.completions.stream({ model, messages: user(prompt) });
      stream.on("content", (delta) => got.add(delta));
      const text = await stream.finalContent();
      if (text !== got.text) throw new Error(`finalContent is ${JSON.stringify(text)}`);
      got.finish = (await stream.finalChatCompletion()).choices[0].finish_reason;
    },
    async conversation(got, prompt) {
      const messages = [
        { role: "system", content: system }, { role: "user", content: "one" },
        { role: "assistant", content: "two" }, ...user(prompt),
      ];
      take(got, await client.chat.completions.create({ model, messages }));
    },
    async image(got, prompt) {
      const url = "data:image/png;base64," + png;
      const messages = user([{ type: "image_url", image_url: { url } }, { type: "text", text: prompt }]);
      take(got, await client.chat.completions.create({ model, messages }));
    },
    async tools(got, prompt) {
      const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } };
      const messages = [
        ...user(prompt), { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "rain" },
      ];
      take(got, await client.chat.completions.create({ model, messages }));
    },
    async loop(got, prompt) {
      const weather = { name: "weather", parameters: schema, parse: JSON.parse, function: ({ city }) => "rain in " + city };
      const tools = [{ type: "function", function: weather }];
      const runner = client.chat.completions.runTools({ model, messages: user(prompt), tools, stream: true });
      got.add(await runner.finalContent());
    },
    async structured(got, prompt) {
      const response_format = { type: "json_schema", json_schema: { name: "place", strict: true, schema } };
      const parsed = await client.chat.completions.parse({ model, messages: user(prompt), response_format });
      got.add(JSON.stringify(parsed.choices[0].message.parsed));
    },
    async denied(got, prompt) {
      await client.chat.completions.create({ model, messages: user(prompt) });
    },
    async invalid() {
      await client.chat.completions.create({ model, messages: [] });
    },
    async unknown(got, prompt) {
      await client.chat.completions.create({ model, messages: user(prompt) });
    },
    async limited(got, prompt) {
      await impatient.chat.completions.create({ model, messages: user(prompt) });
    },
    async retried(got, prompt) {
      take(got, await client.chat.completions.create({ model, messages: user(prompt) }));
    },
    async broken(got, prompt) {
      await takeStream(got, await streamed(prompt));
    },
    async aborted(got, prompt) {
      const abort = new AbortController();
      for await (const chunk of await streamed(prompt, { signal: abort.signal })) {
        got.add(chunk.choices[0]?.delta.content);
        if (got.text) abort.abort();
      }
      got.finish = "the loop ended";
    },
    async response(got, prompt) {
      const response = await client.responses.create({ model, input: prompt, instructions: system });
      got.add(response.output_text);
      got.finish = response.status;
      got.use(response.usage.input_tokens, response.usage.output_tokens);
    },
    async responseStreamed(got, prompt) {
      for await (const event of await client.responses.create({ model, input: prompt, stream: true })) {
        if (event.type === "response.output_text.delta") got.add(event.delta);
        if (event.type !== "response.completed") continue;
        got.finish = event.response.status;
        got.use(event.response.usage.input_tokens, event.response.usage.output_tokens);
      }
    },
    async responseHelper(got, prompt) {
      const stream = client.responses.stream({ model, input: user([{ type: "input_text", text: prompt }]) });
      stream.on("response.output_text.delta", (event) => got.add(event.delta));
      const response = await stream.finalResponse();
      if (response.output_text !== got.text) throw new Error(`output_text is ${JSON.stringify(response.output_text)}`);
      got.finish = response.status;
    },
    async responseBroken(got, prompt) {
      for await (const event of await impatient.responses.create({ model, input: prompt, stream: true })) {
        if (event.type === "response.output_text.delta") got.add(event.delta);
      }
    },
    async models(got) {
      for await (const one of client.models.list()) got.add(one.id + "\n");
    },
  },
);
