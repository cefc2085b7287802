// Calls two tools of a server, one with an output schema, and prints what the client of the SDK returns or throws.
// node client.mjs URL 1|2 PROTOCOL
const [url, version, protocol] = process.argv.slice(2);
const sdk = version === "1" ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client";
const http = version === "1" ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : sdk;
const { Client } = await import(sdk);
const { StreamableHTTPClientTransport } = await import(http);
const options = protocol === "2026-07-28" ? { versionNegotiation: { mode: { pin: protocol } } } : {};
const client = new Client({ name: "test", version: "1" }, options);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await client.listTools();
const found = {};
for (const name of ["shaped", "plain"]) {
  try {
    found[name] = await client.callTool({ name, arguments: {} });
  } catch (error) {
    found[name] = { thrown: error.code };
  }
}
console.log(JSON.stringify(found));
process.exit(0);
