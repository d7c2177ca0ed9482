// The catalog: streams, tables, topics, types, functions.

import { html, useState } from "../vendor/preact.js";
import { one } from "../api.js";
import { typeText } from "../catalogue.js";
import { count, ErrorBox, sourceLink, Table, Tabs, to, topicLink, useLoaded } from "../ui.js";

const TABS = [["streams", "Streams"], ["tables", "Tables"], ["topics", "Topics"], ["types", "Types"], ["functions", "Functions"]];

function sourceRows(list) {
  return list.map((source) => ({
    text: `${source.name} ${source.topic}`,
    cells: [sourceLink(source.name), topicLink(source.topic), source.keyFormat, source.valueFormat, source.isWindowed ? "windowed" : ""],
  }));
}

const SOURCE_COLUMNS = ["Name", "Topic", "Key format", "Value format", ""];

const LISTS = {
  streams: { columns: SOURCE_COLUMNS, load: async (signal) => sourceRows((await one("SHOW STREAMS;", {}, signal)).streams) },
  tables: { columns: SOURCE_COLUMNS, load: async (signal) => sourceRows((await one("SHOW TABLES;", {}, signal)).tables) },
  topics: { columns: ["Name", "Partitions", "Replicas"], load: async (signal) => topicRows(await one("SHOW TOPICS;", {}, signal)) },
  types: { columns: ["Name", "Type"], load: async (signal) => typeRows(await one("SHOW TYPES;", {}, signal)) },
  functions: { columns: ["Name", "Kind", "Category"], load: async (signal) => functionRows(await one("SHOW FUNCTIONS;", {}, signal)) },
};

function topicRows({ topics }) {
  return topics.map(({ name, replicaInfo }) => ({ text: name, cells: [topicLink(name), count(replicaInfo.length), count(replicaInfo[0])] }));
}

function typeRows({ types }) {
  return Object.entries(types).map(([name, schema]) => ({ text: name, cells: [name, html`<code>${typeText(schema)}</code>`] }));
}

function functionRows({ functions }) {
  return functions.map(({ name, type, category }) => ({
    text: `${name} ${category}`, cells: [html`<a href=${to("function", name)}>${name}</a>`, type.toLowerCase(), category.toLowerCase()],
  }));
}

/** The page; its address may name the list. */
export function CataloguePage({ parts }) {
  const chosen = LISTS[parts[0]] ? parts[0] : "streams";
  const [filter, setFilter] = useState("");
  const { value, error, loading } = useLoaded(LISTS[chosen].load, chosen);
  const rows = (value ?? []).filter(({ text }) => text.toLowerCase().includes(filter.toLowerCase()));
  return html`<h1>Catalog</h1>
    <${Tabs} tabs=${TABS} chosen=${chosen} label="Lists" onChoose=${(key) => { location.hash = to("catalog", key); }} />
    <p class="buttons"><input type="search" aria-label="Filter" placeholder="Filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="dim" role="status">${value ? `${count(rows.length)} of ${count(value.length)}` : "…"}</span></p>
    <div class="loading"><${ErrorBox} error=${error} />
      ${value && html`<${Table} columns=${LISTS[chosen].columns} rows=${rows.map(({ cells }) => cells)} empty=${loading ? "…" : "None."} />`}</div>`;
}

