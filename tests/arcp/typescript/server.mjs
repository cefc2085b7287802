// A runtime of the TypeScript SDK with the agents that tests/arcp/test_typescript_sdk.py uses.
// It runs from the folder `packages/sdk` of the SDK, where the SDK's packages are found.
import {
  ARCPError,
  ARCPServer,
  InMemoryCredentialStore,
  InternalError,
  PermissionDeniedError,
  StaticBearerVerifier,
  startWebSocketServer,
  validateLeaseOp,
} from "@agentruntimecontrolprotocol/sdk";

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const provisioner = {
  async issue({ jobId, lease }) {
    if (!lease["model.use"]) return [];
    const id = `${jobId}-key`;
    const wire = { id, scheme: "bearer", value: `key-${jobId}`, endpoint: "http://127.0.0.1/v1" };
    return [{ wire, provisionerId: id }];
  },
  async revoke() {},
};

const agents = {
  async echo(input) {
    return input;
  },
  async talk(input, ctx) {
    await ctx.status("reading");
    await ctx.log("info", "one");
    await ctx.thought("two");
    await ctx.progress(1, { total: 2, units: "files" });
    await ctx.metric({ name: "rows", value: 3, unit: "row" });
    await ctx.artifactRef({ uri: "arcp://a/b", content_type: "text/plain" });
    await ctx.emitEvent("x-vendor.test.note", { a: 1 });
    return "done";
  },
  async denied() {
    throw new PermissionDeniedError("not allowed", { details: { capability: "net.fetch", target: "s3://x/" } });
  },
  async once() {
    throw new InternalError("try again", { retryable: false });
  },
  async broken() {
    throw new Error("the password is hunter2");
  },
  async refuse(input) {
    throw new ARCPError({ code: "INVALID_REQUEST", message: "url is required", details: { field: "url" } });
  },
  async slow(input, ctx) {
    await ctx.log("info", "started");
    for (let step = 0; step < 600 && !ctx.signal.aborted; step++) await sleep(20);
    ctx.signal.throwIfAborted();
    return {};
  },
  async ticks(input, ctx) {
    for (let number = 0; number < input.count; number++) {
      await ctx.log("info", `tick ${number}`);
      if (input.pause) await sleep(input.pause);
    }
    return { count: input.count };
  },
  async chunks(input, ctx) {
    const stream = ctx.streamResult();
    for (let number = 0; number < input.count; number++) await stream.write(`part ${number} é\n`);
    await stream.finalize("end", { summary: "parts" });
  },
  async bytes(input, ctx) {
    const stream = ctx.streamResult();
    await stream.write(Buffer.from([0, 255, 1]).toString("base64"), { encoding: "base64" });
    await stream.finalize();
  },
  async spend(input, ctx) {
    for (let number = 0; number < input.calls; number++) {
      validateLeaseOp({
        lease: ctx.lease,
        capability: "tool.call",
        target: "search",
        ctx: { constraints: ctx.leaseConstraints, budgetRemaining: ctx.budget },
      });
      await ctx.metric({ name: "cost.search", value: input.cost, unit: "USD" });
    }
    return {};
  },
  async read(input, ctx) {
    await sleep(input.wait ?? 0);
    validateLeaseOp({
      lease: ctx.lease,
      capability: "fs.read",
      target: input.path,
      ctx: { constraints: ctx.leaseConstraints, budgetRemaining: ctx.budget },
    });
    return "read";
  },
  async tools(input, ctx) {
    await ctx.toolCall({ tool: "search", args: { q: 1 }, call_id: "c1" });
    await ctx.toolResult({ call_id: "c1", error: { code: "INVALID_REQUEST", message: "404", details: { status: 404 } } });
    return {};
  },
  async parent(input, ctx) {
    const lease_request = input.lease ?? {};
    await ctx.delegate({ delegate_id: "d1", agent: "echo", input: 1, lease_request });
    await sleep(100);
    return "parent";
  },
};

const server = new ARCPServer({
  runtime: { name: "typescript", version: "1.0.0" },
  capabilities: { encodings: ["json"] },
  bearer: new StaticBearerVerifier(
    new Map([
      ["demo-token", { principal: "demo" }],
      ["other-token", { principal: "other" }],
    ]),
  ),
  heartbeatIntervalSeconds: 2,
  cancelGraceMs: 1000,
  backPressureThreshold: 100,
  credentialProvisioner: provisioner,
  credentialStore: new InMemoryCredentialStore(),
});
for (const [name, agent] of Object.entries(agents)) server.registerAgent(name, agent);
server.registerAgentVersion("pinned", "1.0.0", async () => "one");
server.registerAgentVersion("pinned", "2.0.0", async () => "two");
server.setDefaultAgentVersion("pinned", "2.0.0");

const listening = await startWebSocketServer({
  host: "127.0.0.1",
  port: Number(process.env.ARCP_DEMO_PORT),
  onTransport: (transport) => {
    server.accept(transport);
  },
});
console.log(`listening on ${listening.url}`);
