// A stream or table: schema, statement, who reads and writes it, a sample, statistics.

import { html, useState } from "../vendor/preact.js";
import { one, quote } from "../api.js";
import { typeText } from "../catalogue.js";
import { RowTable } from "../rowtable.js";
import { RowStream } from "../stream.js";
import { tabs } from "../workbench.js";
import { Badge, count, ErrorBox, Facts, queryLink, Table, topicLink, useLoaded } from "../ui.js";

const SAMPLE_ROWS = 20;
const SAMPLE_MS = 5_000;

function Queries({ title, list }) {
  const rows = list.map((query) => [queryLink(query.id), html`<${Badge} state=${query.state} />`, html`<code>${query.queryString}</code>`]);
  return html`<h2>${title}</h2><${Table} columns=${["Query", "State", "Statement"]} rows=${rows} />`;
}

function Sample({ name }) {
  const [stream, setStream] = useState(null);
  const take = () => {
    const sql = `SELECT * FROM ${quote(name)} EMIT CHANGES LIMIT ${SAMPLE_ROWS};`;
    const next = new RowStream(sql, { properties: { "auto.offset.reset": "earliest" }, variables: {} });
    setTimeout(() => next.stop(), SAMPLE_MS);
    next.read();
    setStream(next);
  };
  return html`<h2>Sample</h2>
    <p class="buttons"><button onClick=${take}>Show the first rows</button>
      <button onClick=${() => { tabs.add(`SELECT * FROM ${quote(name)} EMIT CHANGES;`); location.hash = "#/statements"; }}>Query in the editor</button></p>
    ${stream && html`<${RowTable} stream=${stream} />`}`;
}

function Statistics({ source }) {
  const own = [source.statistics, source.errorStats].filter(Boolean).join("\n");
  const others = [...source.clusterStatistics, ...source.clusterErrorStats].map(({ host, name, value }) => [host, name, count(value)]);
  return html`<h2>Statistics</h2><pre>${own || "None yet."}</pre>
    ${others.length > 0 && html`<${Table} columns=${["Server", "Statistic", "Value"]} rows=${others} />`}`;
}

function columnRows(source) {
  const roles = { KEY: source.type === "TABLE" ? "primary key" : "key", HEADER: "header" };
  return source.fields.map((field) => [field.name, html`<code>${typeText(field.schema)}</code>`, `${roles[field.type] ?? ""} ${field.headerKey ?? ""}`]);
}

function Source({ source }) {
  const partitions = source.partitions ? `${count(source.partitions)} partitions, ${count(source.replication)} replicas` : "";
  return html`<h1>${source.name} <span class="badge">${source.type}</span></h1>
    <${Facts} facts=${[
      ["Topic", topicLink(source.topic)], ["", partitions], ["Formats", `key ${source.keyFormat}, value ${source.valueFormat}`],
      ["Window", source.windowType], ["Timestamp", source.timestamp], ["Used by", source.sourceConstraints.join(", ")],
    ]} />
    <div class="two"><section><h2>Columns</h2><${Table} columns=${["Column", "Type", ""]} rows=${columnRows(source)} /></section>
      <section><h2>Statement</h2><pre class="plan">${source.statement}</pre></section></div>
    <div class="two"><section><${Queries} title="Written by" list=${source.writeQueries} /></section>
      <section><${Queries} title="Read by" list=${source.readQueries} /></section></div>
    <${Sample} name=${source.name} />
    <${Statistics} source=${source} />`;
}

/** The page of the source that the address names. */
export function SourcePage({ parts: [name] }) {
  const { value, error } = useLoaded((signal) => one(`DESCRIBE ${quote(name)} EXTENDED;`, {}, signal), name);
  return html`<div class="loading"><${ErrorBox} error=${error} />${value && html`<${Source} source=${value.sourceDescription} />`}</div>`;
}
