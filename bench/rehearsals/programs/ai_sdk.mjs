// The npm package `ai` with its provider for OpenAI. Its tool places an order over HTTP.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, jsonSchema, tool } from "ai";

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
let placed = false;
const createOrder = tool({
  description: "Place an order.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { item: { type: "string" }, quantity: { type: "integer" } },
    required: ["item", "quantity"],
  }),
  execute: async (order) => {
    const answer = await fetch(`${process.env.ORDERS_URL}/orders`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(order),
      signal: AbortSignal.timeout(5000),
    });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    placed = true;
    return answer.text();
  },
});
const result = await generateText({
  model: openai.chat("gpt-4o"),
  tools: { create_order: createOrder },
  stopWhen: stepCountIs(5),
  prompt: "Order one tea.",
});
console.log(result.text);
process.exit(placed ? 0 : 1); // whatever the model says
