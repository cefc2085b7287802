// The npm package `openai` with a loop of its own. Its tool places an order over HTTP.
import OpenAI from "openai";

const client = new OpenAI();
const parameters = {
  type: "object",
  properties: { item: { type: "string" }, quantity: { type: "integer" } },
  required: ["item", "quantity"],
};
const tools = [{ type: "function", function: { name: "create_order", parameters } }];
const messages = [{ role: "user", content: "Order one tea." }];
for (;;) {
  const answer = await client.chat.completions.create({ model: "gpt-4o", messages, tools });
  const message = answer.choices[0].message;
  messages.push(message);
  if (!message.tool_calls) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    const order = await fetch(`${process.env.ORDERS_URL}/orders`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: call.function.arguments,
      signal: AbortSignal.timeout(5000),
    });
    if (!order.ok) throw new Error(`${order.status} ${await order.text()}`);
    messages.push({ role: "tool", tool_call_id: call.id, content: await order.text() });
  }
}
