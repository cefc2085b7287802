// Calls two tools of a server, one with an output schema, and prints what the client of the SDK returns or throws.
const sdk = process.argv[3] === "1" ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client";
const http = process.argv[3] === "1" ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : sdk;
const { Client } = await import(sdk);
const { StreamableHTTPClientTransport } = await import(http);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
await client.listTools();
const found = {};
for (const name of ["shaped", "bare"]) {
  try {
    found[name] = await client.callTool({ name, arguments: {} });
  } catch (error) {
    found[name] = { thrown: error.code };
  }
}
console.log(JSON.stringify(found));
process.exit(0);
