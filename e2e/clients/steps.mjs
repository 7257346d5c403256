// What the clients' scripts have in common: see ../clients_test.go, which says what the
// steps are to find.

export const base = process.env.OCP_URL;
export const model = "claude-sonnet-4-6";
export const system = "Be brief.";
export const png = process.env.OCP_PNG; // base64
export const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

// Got is what came of one step.
class Got {
  text = "";
  pieces = 0;
  #place;

  constructor(place) {
    this.#place = place;
  }

  // add takes a piece of a streamed text, or a whole one. The test is told of the first
  // one: the model may be waiting for that.
  add(text) {
    if (!text) return;
    if (this.pieces === 0) fetch(`${process.env.OCP_SEEN}/${this.#place}`, { method: "POST" });
    this.text += text;
    this.pieces++;
  }

  use(input, output) {
    this.usage = { input, output };
  }
}

// run makes all steps at the same time and prints what came of each. A step gets a Got to
// fill and the prompt to send. classes are the client's error classes, the narrower first.
// OCP_STEP names the only one to make; OCP_LOOP says that tools can be called.
export async function run(name, classes, steps) {
  const results = {};
  await Promise.all(
    Object.entries(steps).map(async ([step, make]) => {
      if (process.env.OCP_STEP && process.env.OCP_STEP !== step) return;
      if (step === "loop" && !process.env.OCP_LOOP) return;
      const got = (results[step] = new Got(`${name}/${step}`));
      try {
        await make(got, `[${name}/${step}] go`);
      } catch (e) {
        const known = classes.find((c) => (c.isInstance ? c.isInstance(e) : e instanceof c));
        got.error = {
          is: known?.name ?? e.name,
          status: e.status ?? e.statusCode,
          code: e.code ?? undefined,
          type: e.type ?? undefined,
          message: e.message,
          stack: e.stack,
        };
      }
    }),
  );
  console.log(JSON.stringify(results, null, 2));
}
