// The answers of statements as the page shows them.

import { html } from "./vendor/preact.js";
import { cellText, Exact } from "./exact.js";
import { Facts, queryLink, sourceLink, Table, topicLink } from "./ui.js";
import { UpgradeReport } from "./upgradereport.js";
import { typeText } from "./catalogue.js";

const LINKS = { topic: topicLink, id: queryLink };

function cell(name, value, row) {
  if (name === "name" && row.topic) return sourceLink(value);
  if (LINKS[name] && typeof value === "string") return LINKS[name](value);
  if (value !== null && typeof value === "object" && "type" in value && "fields" in value) return typeText(value);
  return cellText(value) ?? "";
}

/** A list of objects as a table whose columns are their fields. */
function Objects({ list }) {
  const names = [...new Set(list.flatMap(Object.keys))];
  return html`<${Table} columns=${names} rows=${list.map((row) => names.map((name) => cell(name, row[name], row)))} />`;
}

function Any({ value }) {
  if (Array.isArray(value) && !value.length) return html`<span class="dim">None.</span>`;
  if (Array.isArray(value) && value.length && value.every((each) => each !== null && typeof each === "object" && !(each instanceof Exact))) {
    return html`<${Objects} list=${value} />`;
  }
  const text = cellText(value) ?? "";
  return text.includes("\n") || text.length > 120 ? html`<pre>${text}</pre>` : html`<span>${text}</span>`;
}

function Described({ source }) {
  const columns = source.fields.map((field) => [field.name, typeText(field.schema), field.type ?? ""]);
  return html`<${Facts} facts=${[
    ["Name", sourceLink(source.name)], ["Type", source.type], ["Topic", topicLink(source.topic)],
    ["Formats", `${source.keyFormat}, ${source.valueFormat}`], ["Window", source.windowType], ["Statement", html`<pre>${source.statement}</pre>`],
  ]} /><${Table} columns=${["Column", "Type", ""]} rows=${columns} />`;
}

function Query({ query }) {
  return html`<${Facts} facts=${[
    ["Query", query.state ? queryLink(query.id) : query.id], ["State", query.state], ["Reads", query.sources.join(", ")], ["Writes", query.sinks.join(", ")],
  ]} />${query.upgrade && html`<${UpgradeReport} report=${query.upgrade} />`}<pre class="plan">${query.executionPlan}</pre>`;
}

const SHOWN = {
  currentStatus: ({ commandStatus, upgrade }) => html`<p>${commandStatus.message}</p>
    ${commandStatus.queryId && html`<p>Query ${queryLink(commandStatus.queryId)}</p>`}
    ${upgrade && html`<${UpgradeReport} report=${upgrade} />`}`,
  warning_entity: ({ message }) => html`<p>${message}</p>`,
  sourceDescription: ({ sourceDescription }) => html`<${Described} source=${sourceDescription} />`,
  queryDescription: ({ queryDescription }) => html`<${Query} query=${queryDescription} />`,
};

const FRAME = new Set(["@type", "statementText", "warnings"]);

/** One entity of the answer to /ksql. */
export function Answer({ entity }) {
  const known = SHOWN[entity["@type"]];
  const rest = Object.entries(entity).filter(([name]) => !FRAME.has(name));
  return html`<div class="answer">
    ${known ? known(entity) : rest.length === 1 ? html`<${Any} value=${rest[0][1]} />`
    : html`<${Facts} facts=${rest.map(([name, value]) => [name, html`<${Any} value=${value} />`])} />`}
    ${(entity.warnings ?? []).map(({ message }) => html`<p class="note">${message}</p>`)}
  </div>`;
}

