// A topic: its records from an offset or a time on, as text.

import { html, useRef, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { count, Dialog, ErrorBox, Facts, Table, Time, useLoaded } from "../ui.js";

const LIMIT = 50;
const MOST = 1_000;
const SHOWN_CHARS = 300;

function address(topic, { from, offset, time, partition, next }, partitions) {
  const isEnd = from === "end" && !next;
  const each = Math.max(1, Math.min(LIMIT, Math.floor(MOST / partitions))); // else the newest would be beyond the first answer
  const query = new URLSearchParams({ limit: isEnd ? MOST : LIMIT }); // the last ones of all partitions together
  if (partition !== "") query.set("partition", partition);
  if (next) query.set("next", next);
  else if (from === "offset") query.set("offset", offset || 0);
  else if (from === "time") query.set("time", new Date(time).getTime() || 0);
  else if (isEnd) query.set("offset", -each);
  return `/topics/${encodeURIComponent(topic)}/records?${query}`;
}

function Choice({ onGo }) {
  const [from, setFrom] = useState("beginning");
  const [offset, setOffset] = useState("0");
  const [time, setTime] = useState("");
  const [partition, setPartition] = useState("");
  const go = (event) => {
    event.preventDefault();
    onGo({ from, offset, time, partition, turn: Date.now() });
  };
  return html`<form class="bar" onSubmit=${go}>
    <label>From <select aria-label="From" value=${from} onChange=${(event) => setFrom(event.target.value)}>
      <option value="beginning">the beginning</option><option value="end">the last ones (${LIMIT} of each partition, ${count(MOST)} in all)</option>
      <option value="offset">an offset</option><option value="time">a time</option></select></label>
    ${from === "offset" && html`<input type="number" min="0" aria-label="Offset" value=${offset} onInput=${(event) => setOffset(event.target.value)} />`}
    ${from === "time" && html`<input type="datetime-local" step="1" required aria-label="Time" value=${time} onInput=${(event) => setTime(event.target.value)} />`}
    <label>Partition <input type="number" min="0" class="short" aria-label="Partition" placeholder="all" value=${partition} onInput=${(event) => setPartition(event.target.value)} /></label>
    <button class="main">Show</button></form>`;
}

const cut = (text) => (text === null ? html`<span class="dim">null</span>` : html`<code>${text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text}</code>`);

function Record({ record, onClose }) {
  const headers = record.headers.map(({ name, value }) => html`<div><code>${name} = ${value ?? "null"}</code></div>`);
  return html`<${Dialog} title=${`Record ${record.partition}/${record.offset}`} onClose=${onClose} wide>
    <${Facts} facts=${[
      ["Time", html`<${Time} ms=${record.timestamp} />`], ["Headers", headers.length ? headers : ""],
      ["Key", html`<pre>${record.key ?? "null"}</pre>`], ["Value", html`<pre>${record.value ?? "null"}</pre>`],
    ]} /><//>`;
}

function Records({ browsed, onNext }) {
  const [open, setOpen] = useState(null);
  const rows = browsed.records.map((record) => [
    record.partition, html`<button class="plain link" onClick=${() => setOpen(record)}>${String(record.offset)}</button>`, html`<${Time} ms=${record.timestamp} />`,
    cut(record.key), cut(record.value), record.headers.length || "",
  ]);
  const more = browsed.partitions.some(({ next, end }) => Number(next) < Number(end));
  return html`<${Facts} facts=${[
      ["Key format", browsed.keyFormats.join(" or ")], ["Value format", browsed.valueFormats.join(" or ")],
      ["Offsets", browsed.partitions.map(({ partition, begin, end }) => `partition ${partition}: ${count(begin)} to ${count(end)}`).join("; ")],
    ]} />
    <${Table} columns=${["Partition", "Offset", "Time", "Key", "Value", "Headers"]} rows=${rows} empty="There are no records from there on." />
    <p class="buttons"><button onClick=${onNext} disabled=${!more}>Next records</button></p>
    ${open && html`<${Record} record=${open} onClose=${() => setOpen(null)} />`}`;
}

/** The page of the topic that the address names. */
export function TopicPage({ parts: [topic] }) {
  const [place, setPlace] = useState({ from: "beginning", partition: "" });
  const known = useRef(1);
  const partitions = place.partition === "" ? known.current : 1;
  const { value, error } = useLoaded((signal) => get(address(topic, place, partitions), { signal }), JSON.stringify([topic, place]));
  if (value && place.partition === "") known.current = value.partitions.length;
  const next = () => setPlace({ ...place, next: value.partitions.map((each) => `${each.partition}:${each.next}`).join(",") });
  return html`<h1>${topic} <span class="badge">topic</span></h1><${Choice} onGo=${setPlace} />
    <div class="loading"><${ErrorBox} error=${error} />${value && html`<${Records} browsed=${value} onNext=${next} />`}</div>`;
}
