// check.mjs: one check with OpenAI's own client:  node check.mjs BASE_URL NAME [KEY]
// It ends with exit code 0 if the check holds; what it prints besides is for a person.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, name, apiKey = "none"] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 300_000 });

const question = [{ role: "user", content: "What is 47 + 385?" }];
const story = [{ role: "user", content: "Tell me a story about a brave fox and a river." }];
const right = "47 + 385 = 432.";

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}
const text = (chunks, index = 0) =>
  chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index)
    .map((choice) => choice.delta?.content ?? choice.text ?? "").join("");

const checks = {
  async list() {
    const models = await collect(await client.models.list());
    assert.deepEqual(models.map((model) => [model.id, model.object]), [["model-a", "model"], ["model-b", "model"]]);
    assert.equal((await client.models.retrieve("model-b")).id, "model-b");
    assert.ok(models.every((model) => Number.isInteger(model.created) && model.created > 1_500_000_000));
  },

  async chat() {
    const answer = await client.chat.completions.create({ model: "model-a", messages: question, temperature: 0 });
    assert.equal(answer.object, "chat.completion");
    assert.deepEqual(answer.choices[0].message, { role: "assistant", content: right, refusal: null });
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
    assert.equal(answer._request_id, answer.id);
    const two = await client.chat.completions.create(
      { model: "model-b", messages: story, n: 2, seed: 7, temperature: 1, max_completion_tokens: 20, logprobs: true, top_logprobs: 2 });
    assert.equal(two.choices.length, 2);
    assert.notEqual(two.choices[0].message.content, two.choices[1].message.content);
    for (const choice of two.choices) {
      assert.equal(choice.finish_reason, "length");
      assert.equal(choice.logprobs.content.length, 20);
      assert.equal(Buffer.from(choice.logprobs.content.flatMap((token) => token.bytes)).toString().trim(), choice.message.content.trim());
      assert.ok(choice.logprobs.content.every((token) => token.top_logprobs.length === 2));
    }
  },

  async complete() {
    const answer = await client.completions.create({ model: "model-a", prompt: "12 + 30 =", temperature: 0, stop: "\n" });
    assert.equal(answer.object, "text_completion");
    assert.equal(answer.choices[0].text, " 42.");
    const many = await client.completions.create({ model: "model-b", prompt: ["Once upon a time", "Long ago"], max_tokens: 8, temperature: 0 });
    assert.deepEqual(many.choices.map((choice) => choice.index), [0, 1]);
    const chunks = await collect(await client.completions.create({ model: "model-b", prompt: "Once upon a time", max_tokens: 8, temperature: 0, stream: true }));
    assert.equal(text(chunks), many.choices[0].text);
    const ids = await client.completions.create({ model: "model-a", prompt: [20, 21, 22], max_tokens: 3 });
    assert.equal(ids.usage.prompt_tokens, 3);
  },

  async stream() {
    for (const [model, messages] of [["model-a", question], ["model-b", story]]) {
      const whole = await client.chat.completions.create({ model, messages, temperature: 0 });
      const chunks = await collect(await client.chat.completions.create({ model, messages, temperature: 0, stream: true }));
      assert.equal(text(chunks), whole.choices[0].message.content);
      assert.deepEqual(chunks.map((chunk) => chunk.choices[0].finish_reason).filter(Boolean), ["stop"]);
      assert.ok(chunks.every((chunk) => chunk.usage === undefined));
      // The client's own accumulator comes to the same answer.
      const helper = await client.chat.completions.stream({ model, messages, temperature: 0 }).finalChatCompletion();
      assert.equal(helper.choices[0].message.content, whole.choices[0].message.content);
    }
    const three = await collect(await client.chat.completions.create(
      { model: "model-b", messages: story, temperature: 1, seed: 2, n: 3, max_tokens: 30, stream: true }));
    const whole = await client.chat.completions.create({ model: "model-b", messages: story, temperature: 1, seed: 2, n: 3, max_tokens: 30 });
    assert.deepEqual([0, 1, 2].map((index) => text(three, index)), whole.choices.map((choice) => choice.message.content));
  },

  async usage() {
    const whole = await client.chat.completions.create({ model: "model-a", messages: question, temperature: 0 });
    const chunks = await collect(await client.chat.completions.create(
      { model: "model-a", messages: question, temperature: 0, stream: true, stream_options: { include_usage: true } }));
    const last = chunks.pop();
    assert.deepEqual(last.choices, []);
    assert.deepEqual(last.usage, whole.usage);
    assert.ok(chunks.every((chunk) => chunk.usage === null));
    assert.equal(text(chunks), right);
  },

  // The stream would go on to the end of the context: only the cancel ends it.
  async cancel() {
    const abort = new AbortController();
    const stream = await client.chat.completions.create(
      { model: "model-b", messages: story, temperature: 0, stream: true, logit_bias: { 2: -100 } }, { signal: abort.signal });
    let seen = 0;
    for await (const chunk of stream) {
      assert.ok(chunk.choices.every((choice) => choice.finish_reason === null));
      if (++seen === 3) abort.abort();
    }
    assert.ok(seen >= 3);
  },

  // Leaving the loop closes the connection, too.
  async leave() {
    const stream = await client.completions.create({ model: "model-b", prompt: "Once", temperature: 0, stream: true, max_tokens: 4000, logit_bias: { 2: -100 } });
    for await (const chunk of stream) {
      assert.equal(chunk.object, "text_completion");
      break;
    }
  },

  async cancelled_early() {
    const abort = new AbortController();
    abort.abort();
    await assert.rejects(client.chat.completions.create({ model: "model-b", messages: story }, { signal: abort.signal }), OpenAI.APIUserAbortError);
  },

  async errors() {
    const rejected = (promise, kind, fields) => assert.rejects(promise, (error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
      for (const [field, value] of Object.entries(fields)) assert.equal(error[field], value, field);
      assert.ok(error.requestID);
      return true;
    });
    for (const stream of [false, true]) {
      await rejected(client.chat.completions.create({ model: "gpt-none", messages: question, stream }), OpenAI.NotFoundError,
        { status: 404, code: "model_not_found", param: "model", type: "invalid_request_error" });
      await rejected(client.chat.completions.create({ model: "model-a", messages: question, temperature: 3, stream }), OpenAI.BadRequestError,
        { status: 400, param: "temperature", type: "invalid_request_error" });
      await rejected(client.chat.completions.create({ model: "model-a", messages: [], stream }), OpenAI.BadRequestError, { status: 400, param: "messages" });
      await rejected(client.completions.create({ model: "model-b", prompt: Array(5000).fill(20), stream }), OpenAI.BadRequestError, { status: 400 });
      await rejected(client.completions.create({ model: "model-b", prompt: "x", max_tokens: 0, stream }), OpenAI.BadRequestError, { param: "max_tokens" });
    }
    await rejected(client.models.retrieve("none"), OpenAI.NotFoundError, { status: 404 });
    await rejected(client.embeddings.create({ model: "model-a", input: "x", encoding_format: "float" }), OpenAI.NotFoundError, { status: 404 });
  },

  async unknown_key() {
    await assert.rejects(client.chat.completions.create({ model: "model-a", messages: question }), OpenAI.AuthenticationError);
    await assert.rejects(collect(client.models.list()), OpenAI.AuthenticationError);
  },

  // Both models at once over the client's own kept connections.
  async together() {
    const ask = async (number) => {
      const [model, messages] = number % 2 ? ["model-b", story] : ["model-a", question];
      if (number % 3) return (await client.chat.completions.create({ model, messages, temperature: 0 })).choices[0].message.content;
      return text(await collect(await client.chat.completions.create({ model, messages, temperature: 0, stream: true })));
    };
    const solo = [await ask(0), await ask(1)];
    assert.equal(solo[0], right);
    const answers = await Promise.all(Array.from({ length: 24 }, (_, number) => ask(number)));
    answers.forEach((answer, number) => assert.equal(answer, solo[number % 2]));
  },
};

await checks[name]();
