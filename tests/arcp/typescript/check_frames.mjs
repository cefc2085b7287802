// Reads frames as JSON lines, and prints those that do not fit the schemas of the TypeScript SDK, with the reason.
// It runs from the folder `packages/sdk` of the SDK, where the SDK's packages are found.
import { createInterface } from "node:readline";

import { EnvelopeSchema, RoundTripEnvelopeSchema, parseJobEventBody } from "@agentruntimecontrolprotocol/sdk";
import { Schema } from "effect";

const decodeAny = Schema.decodeUnknownSync(RoundTripEnvelopeSchema);
const decode = Schema.decodeUnknownSync(EnvelopeSchema);
const unknown = new Set(process.argv.slice(2));

for await (const line of createInterface({ input: process.stdin })) {
  const frame = JSON.parse(line);
  try {
    decodeAny(frame);
    if (!unknown.has(frame.type)) decode(frame);
    if (frame.type === "job.event") parseJobEventBody(frame.payload.kind, frame.payload.body);
  } catch (error) {
    console.log(JSON.stringify({ frame, why: String(error.message).slice(-400) }));
  }
}
