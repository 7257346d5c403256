// LangChain's chat model for OpenAI's API.
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import OpenAI from "openai";
import { base, model as name, png, run, schema, system } from "./steps.mjs";

const configuration = { baseURL: base + "/v1" };
const model = new ChatOpenAI({ model: name, apiKey: "unused", configuration });
const impatient = new ChatOpenAI({ model: name, apiKey: "unused", configuration, maxRetries: 0 });

function take(got, message) {
  got.add(message.content);
  got.finish = message.response_metadata.finish_reason;
  got.use(message.usage_metadata.input_tokens, message.usage_metadata.output_tokens);
}

async function takeStream(got, stream, onText = () => {}) {
  for await (const chunk of stream) {
    got.add(chunk.content);
    if (chunk.content) onText();
    got.finish = chunk.response_metadata.finish_reason ?? got.finish;
    if (chunk.usage_metadata) got.use(chunk.usage_metadata.input_tokens, chunk.usage_metadata.output_tokens);
  }
}

await run("langchain", [OpenAI.AuthenticationError, OpenAI.BadRequestError, OpenAI.RateLimitError, OpenAI.APIError], {
  async streamed(got, prompt) {
    await takeStream(got, await model.stream(prompt));
  },
  async whole(got, prompt) {
    take(got, await model.invoke(prompt));
  },
  async conversation(got, prompt) {
    const history = [new SystemMessage(system), new HumanMessage("one"), new AIMessage("two"), new HumanMessage(prompt)];
    take(got, await model.invoke(history));
  },
  async image(got, prompt) {
    const url = "data:image/png;base64," + png;
    const content = [{ type: "image_url", image_url: { url } }, { type: "text", text: prompt }];
    take(got, await model.invoke([new HumanMessage({ content })]));
  },
  async tools(got, prompt) {
    const history = [
      new HumanMessage(prompt),
      new AIMessage({ content: "", tool_calls: [{ id: "call_1", name: "weather", args: { city: "Paris" } }] }),
      new ToolMessage({ tool_call_id: "call_1", content: "rain" }),
    ];
    take(got, await model.invoke(history));
  },
  async loop(got, prompt) {
    const weather = tool(({ city }) => "rain in " + city, { name: "weather", schema });
    const messages = [new HumanMessage(prompt)];
    for (;;) {
      const answer = await model.bindTools([weather]).invoke(messages);
      messages.push(answer);
      if (!answer.tool_calls.length) return take(got, answer);
      for (const call of answer.tool_calls) messages.push(await weather.invoke(call));
    }
  },
  async structured(got, prompt) {
    got.add(JSON.stringify(await model.withStructuredOutput(schema, { name: "place", method: "jsonSchema" }).invoke(prompt)));
  },
  async denied(got, prompt) {
    await model.invoke(prompt);
  },
  async limited(got, prompt) {
    await impatient.invoke(prompt);
  },
  async retried(got, prompt) {
    take(got, await model.invoke(prompt));
  },
  async broken(got, prompt) {
    await takeStream(got, await impatient.stream(prompt));
  },
  async aborted(got, prompt) {
    const abort = new AbortController();
    await takeStream(got, await impatient.stream(prompt, { signal: abort.signal }), () => abort.abort());
    got.finish = "the loop ended";
  },
});
