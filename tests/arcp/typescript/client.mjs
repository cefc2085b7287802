// Calls of a client of the TypeScript SDK, one line for each: what it returned, or "hangs" if the SDK's call did not settle.
// Its arguments are the features to offer; without any, the SDK's own list.
import { ARCPClient, WebSocketTransport } from "@agentruntimecontrolprotocol/sdk";

const features = process.argv.slice(2);
const client = new ARCPClient({
  client: { name: "shop", version: "1.0.0" },
  capabilities: { encodings: ["json"], ...(features.length > 0 ? { features } : {}) },
  authScheme: "bearer",
  token: process.env["ARCP_DEMO_TOKEN"],
});
await client.connect(await WebSocketTransport.connect(process.env["ARCP_DEMO_URL"]));

async function run(name, job) {
  const late = new Promise((resolve) => setTimeout(() => resolve("hangs"), 10_000));
  const work = (async () => {
    const handle = await client.submit(job);
    const result = await handle.done;
    return JSON.stringify(result.result ?? null);
  })().catch((error) => error.code ?? String(error));
  process.stdout.write(`${name} ${await Promise.race([work, late])}\n`);
}

await run("result", { agent: "echo", input: { n: 5 } });
await run("unknown agent", { agent: "nobody" });
await run("unknown version", { agent: "echo@9" });
await run("failure", { agent: "denied" });
await run("own code", { agent: "own" });
await run("in doubt", { agent: "doubtful" });
await run("key", { agent: "echo", input: 1, idempotencyKey: "k" });
await run("conflicting key", { agent: "echo", input: 2, idempotencyKey: "k" });
await run("time limit", { agent: "slow", maxRuntimeSec: 1 });
await run("after all that", { agent: "echo", input: 1 });
process.exit(0);
