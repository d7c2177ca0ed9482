// The persistent queries with their states, rates and lags; and the push queries that clients read.

import { html, useState } from "../vendor/preact.js";
import { one } from "../api.js";
import { live } from "../metrics.js";
import { LeaderNote } from "../leader.js";
import { Badge, count, ErrorBox, queryLink, sourceLink, Table, useLoaded, useUpdates } from "../ui.js";

/** Return the word for a query's state: what is wrong with it comes first. */
export function stateOf(query, metrics) {
  if (metrics?.rebuilding && query.state === "RUNNING") return "REBUILDING";
  return metrics?.stalled && query.state === "RUNNING" ? "STALLED" : query.state;
}

const seconds = (value) => (value === null || value === undefined ? "–" : `${count(value)} s`);

function row(query) {
  const metrics = live.queries.get(query.id);
  const state = stateOf(query, metrics);
  return [
    query.queryType === "PUSH" ? query.id : queryLink(query.id), html`<${Badge} state=${state} />`, query.sinks.map(sourceLink),
    html`<span class="number">${count(metrics?.rate)}</span>`, html`<span class="number">${count(metrics?.rateOut)}</span>`,
    html`<span class="number">${metrics?.runs ? count(metrics.lagRecords) : "–"}</span>`, html`<span class="number">${seconds(metrics?.lagSeconds)}</span>`,
    html`<code>${query.queryString.replace(/\s+/g, " ").slice(0, 160)}</code>
      ${query.warnings.map((warning) => html`<p class="note">${warning}</p>`)}`,
  ];
}

const COLUMNS = ["Query", "State", "Writes", "In/s", "Out/s", "Lag, records", "Lag", "Statement"];

/** The page. */
export function QueriesPage() {
  useUpdates(live);
  const [filter, setFilter] = useState("");
  const { value, error } = useLoaded((signal) => one("SHOW QUERIES;", {}, signal), "", 5_000);
  const all = value?.queries ?? [];
  const shown = all.filter(({ id, queryString }) => `${id} ${queryString}`.toLowerCase().includes(filter.toLowerCase()));
  return html`<h1>Queries</h1>
    <p class="buttons"><input type="search" aria-label="Filter" placeholder="Filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="dim" role="status">${value ? `${count(shown.length)} of ${count(all.length)}` : "…"}</span></p>
    <div class="loading"><${ErrorBox} error=${error} />
      ${value && html`<${Table} columns=${COLUMNS} rows=${shown.map(row)} />`}
      <${LeaderNote} /></div>`;
}
