// A persistent query: charts, plan, what it skipped, settings, history of upgrades; and what one can do with it.

import { html, useState } from "../vendor/preact.js";
import { get, literal, one, quote, run } from "../api.js";
import { cellText } from "../exact.js";
import { Chart } from "../charts.js";
import { LeaderNote } from "../leader.js";
import { live } from "../metrics.js";
import { RowStream } from "../stream.js";
import { RowTable } from "../rowtable.js";
import { ReplaceDialog, targetOf } from "../replace.js";
import { UpgradeHistory } from "../upgradehistory.js";
import { Badge, Confirmed, count, ErrorBox, Facts, sourceLink, Table, Time, useAttempt, useLoaded, useUpdates } from "../ui.js";
import { stateOf } from "./queries.js";

const LOG_MS = 20_000;

function Buttons({ query, onDone, onReplace }) {
  const [attempt, error] = useAttempt();
  const act = (verb) => async () => {
    await run(`${verb} ${quote(query.id)};`);
    onDone();
  };
  return html`<p class="buttons">
    <button class="main" onClick=${onReplace}>Replace…</button>
    ${query.state === "PAUSED"
      ? html`<button onClick=${() => attempt(act("RESUME"))}>Resume</button>`
      : html`<${Confirmed} label="Pause" title="Pause ${query.id}" text="The query rests until it is resumed. Its input waits in Kafka." act=${act("PAUSE")} />`}
    <${Confirmed} label="Terminate" kind="danger" title=${`Terminate ${query.id}`} act=${act("TERMINATE")}
      text="The query ends, and its state is deleted. Its result stays as it is. This cannot be undone." />
  </p><${ErrorBox} error=${error} />`;
}

function column(samples, name) {
  return samples.map((sample) => sample[name]);
}

function Charts({ id }) {
  const { value, error } = useLoaded((signal) => get(`/metrics/history/${encodeURIComponent(id)}?server=leader`, { signal }), id, 5_000);
  if (error) return html`<${ErrorBox} error=${error} />`;
  const samples = value?.samples ?? [];
  const times = samples.map(({ time }) => time / 1000);
  const charts = [
    ["Records per second", [["read", "--accent", "inPerSecond"], ["written", "--good", "outPerSecond"]]],
    ["Lag in seconds", [["lag", "--warn", "lagSeconds"]]],
    ["Batch time in seconds", [["batch", "--accent", "batchSeconds"], ["run", "--good", "runSeconds"],
      ["plan", "--warn", "planSeconds"], ["log", "--sql-type", "logSeconds"]]],
    ["State in bytes", [["state", "--sql-type", "stateBytes"]]],
  ];
  return html`<div class="charts">${charts.map(([title, lines]) => html`<${Chart} title=${title} times=${times}
    lines=${lines.map(([label, colour, name]) => ({ label, colour, values: column(samples, name) }))} />`)}</div>
    <p class="dim">${samples.length < 2 ? "The first points come with the next looks of the server." : `${count(samples.length)} looks of the server, kept in its memory.`}</p>`;
}

function skippedQuery(stream, id) {
  const reasons = ["DESERIALIZATIONERROR->CAUSE[1]", "RECORDPROCESSINGERROR->ERRORMESSAGE", "PRODUCTIONERROR->ERRORMESSAGE",
    "SERIALIZATIONERROR->ERRORMESSAGE", "KAFKASTREAMSTHREADERROR->ERRORMESSAGE"];
  const reason = `COALESCE(${reasons.map((each) => `MESSAGE->${each}`).join(", ")})`;
  const own = literal(`processing.${id}`);
  return `SELECT FROM_UNIXTIME(TIME) AS WHEN_LOGGED, ${reason} AS REASON, LOGGER FROM ${quote(stream)}
    WHERE LOGGER = ${own} OR INSTR(LOGGER, ${literal(`processing.${id}.`)}) = 1;`;
}

function Skipped({ id }) {
  const [stream, setStream] = useState(null);
  const metrics = live.queries.get(id);
  const [attempt, error] = useAttempt();
  const look = () => attempt(async () => {
    const properties = { "auto.offset.reset": "earliest" };
    const [{ properties: configured }] = await run("SHOW PROPERTIES;");
    const name = configured.find((each) => each.name.endsWith("ksql.logging.processing.stream.name"))?.value ?? "KSQL_PROCESSING_LOG";
    const next = new RowStream(skippedQuery(name, id), { properties, variables: {} });
    setTimeout(() => next.stop(), LOG_MS);
    next.read();
    setStream(next);
  });
  return html`<h2>Skipped records</h2>
    <p>${metrics ? `${count(metrics.failed)} failed, ${count(metrics.late)} too late, since the server began.` : "Not known at this server."}</p>
    <p class="buttons"><button onClick=${look}>Show the reasons from the processing log</button></p><${ErrorBox} error=${error} />
    ${stream && html`<${RowTable} stream=${stream} />`}`;
}

function Lags({ id }) {
  const lags = live.queries.get(id)?.lags ?? [];
  const rows = lags.map(({ topic, partition, records }) => [topic, partition, count(records)]);
  return html`<h2>Lag by partition</h2><${Table} columns=${["Topic", "Partition", "Unread records"]} rows=${rows} empty="Not known yet." />`;
}

function Settings({ query }) {
  const rows = Object.entries(query.overriddenProperties).map(([name, value]) => [html`<code>${name}</code>`, cellText(value)]);
  return html`<h2>Settings of its own</h2><${Table} columns=${["Property", "Value"]} rows=${rows} />`;
}

function Errors({ list }) {
  if (!list.length) return null;
  const rows = list.map(({ timestamp, errorMessage, type }) => [html`<${Time} ms=${timestamp} />`, type, html`<pre>${errorMessage}</pre>`]);
  return html`<h2>Errors</h2><${Table} columns=${["Time", "Kind", "Error"]} rows=${rows} />`;
}

function Query({ query, reload }) {
  const [replacing, setReplacing] = useState(null);
  const [turn, setTurn] = useState(0);
  const metrics = live.queries.get(query.id);
  const hosts = Object.entries(query.ksqlHostQueryStatus).map(([host, state]) => `${host}: ${state}`).join(", ");
  const again = () => { reload(); setTurn(turn + 1); };
  const [attempt, failure] = useAttempt();
  const replace = (statement) => attempt(async () => {
    const { queryDescription } = await one(`EXPLAIN ${quote(query.id)};`); // what is shown may be some seconds old
    setReplacing({ statement, target: targetOf(queryDescription) });
  });
  return html`<h1>${query.id} <${Badge} state=${stateOf(query, metrics)} /></h1>
    <${Facts} facts=${[
      ["Reads", query.sources.map((name) => html`${sourceLink(name)} `)], ["Writes", query.sinks.map((name) => html`${sourceLink(name)} `)],
      ["Window", query.windowType], ["Consumer group", query.consumerGroupId], ["Server", hosts],
    ]} />
    <${Buttons} query=${query} onDone=${again} onReplace=${() => replace(null)} /><${ErrorBox} error=${failure} />
    <pre class="plan">${query.statementText}</pre>
    <${Errors} list=${query.queryErrors} />
    <${LeaderNote} /><${Charts} id=${query.id} />
    <h2>Upgrades</h2>
    <${UpgradeHistory} key=${turn} query=${query} onReplace=${replace} />
    <h2>Plan</h2><pre class="plan" tabindex="0">${query.executionPlan}</pre>
    <div class="two"><section><${Lags} id=${query.id} /></section><section><${Settings} query=${query} /></section></div>
    <${Skipped} id=${query.id} />
    ${replacing && html`<${ReplaceDialog} target=${replacing.target} text=${replacing.statement} onClose=${() => { setReplacing(null); again(); }} />`}`;
}

/** The page of the query that the address names. */
export function QueryPage({ parts: [id] }) {
  useUpdates(live);
  const { value, error, reload } = useLoaded((signal) => one(`EXPLAIN ${quote(id)};`, {}, signal), id, 5_000);
  return html`<div class="loading"><${ErrorBox} error=${error} />
    ${value && html`<${Query} query=${value.queryDescription} reload=${reload} />`}</div>`;
}
