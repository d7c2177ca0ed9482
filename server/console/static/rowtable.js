// Rows of a query as a table that follows; only those in view are drawn.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { cellText } from "./exact.js";
import { asCsv, asJson, download } from "./export.js";
import { MOST_ROWS } from "./stream.js";
import { count, Dialog, ErrorBox, Facts, useUpdates } from "./ui.js";

const ROW_PX = 26;
const MARGIN_ROWS = 12;
const NUMERIC = /^(INTEGER|BIGINT|DOUBLE|DECIMAL)/;

function widths(stream) {
  const columns = stream.columns ?? [{ name: "", type: "" }];
  const sample = Array.from({ length: Math.min(stream.rows.texts.length, 50) }, (_, at) => stream.row(at));
  if (stream.columns === null) return [Math.max(...sample.map((row) => row[0].length), 40) + 4];
  return columns.map((column, at) => {
    const texts = sample.map((row) => (cellText(row[at]) ?? "null").length);
    return Math.min(Math.max(column.name.length + column.type.length + 1, 5, ...texts), 44) + 3;
  });
}

function layout(stream) {
  const chars = widths(stream);
  return {
    stream,
    columns: stream.columns,
    size: stream.rows.texts.length,
    template: chars.map((width) => `minmax(${width}ch, ${width}fr)`).join(" "),
    minWidth: `${chars.reduce((sum, width) => sum + width, 0)}ch`,
  };
}

/** Return whether the widths of columns still hold: the first rows change them, later ones do not. */
function isLaidOut(known, stream) {
  const isSame = known?.stream === stream && known.columns === stream.columns;
  return isSame && (known.size >= 20 || known.size === stream.rows.texts.length);
}

function Cell({ value, type }) {
  const text = cellText(value);
  if (text === null) return html`<span class="cell null" role="cell">null</span>`;
  const kind = NUMERIC.test(type) ? "cell number" : "cell";
  return html`<span class=${kind} role="cell" title=${text.length > 40 ? text.slice(0, 2000) : undefined}>${text.slice(0, 2000)}</span>`;
}

function Row({ stream, index, onOpen }) {
  const row = stream.row(index);
  const types = stream.columns?.map((column) => column.type) ?? [""];
  return html`<div class=${`row ${row.tombstone ? "gone" : ""}`} role="row" tabindex="-1" onDblClick=${() => onOpen(row)}>
    ${types.map((type, at) => html`<${Cell} value=${row[at]} type=${type} />`)}
  </div>`;
}

function statusText(stream) {
  const seconds = ((stream.ended ?? Date.now()) - stream.began) / 1000;
  const parts = [`${count(stream.total)} ${stream.total === 1 ? "row" : "rows"}`];
  if (stream.rows.dropped) parts.push(`the latest ${count(stream.rows.texts.length)} kept, ${count(stream.rows.dropped)} left out`);
  if (stream.state === "running" && stream.rate) parts.push(`${count(stream.rate)}/s`);
  parts.push({ running: "running", ended: "ended", stopped: "stopped", failed: "failed" }[stream.state], `${seconds.toFixed(1)} s`);
  return parts.join(" · ");
}

function Bar({ stream, follows, setFollows }) {
  const name = `rows-${new Date(stream.began).toISOString().replaceAll(":", "-")}`;
  return html`<div class="bar">
    <span class="grow" data-test="rows-status" role="status">${statusText(stream)}</span>
    <label><input type="checkbox" checked=${follows} onChange=${(event) => setFollows(event.target.checked)} /> follow</label>
    <button onClick=${() => download(`${name}.csv`, "text/csv", asCsv(stream))} disabled=${!stream.rows.texts.length}>CSV</button>
    <button onClick=${() => download(`${name}.json`, "application/json", asJson(stream))} disabled=${!stream.rows.texts.length}>JSON</button>
    <button class="main" onClick=${() => stream.stop()} disabled=${stream.state !== "running"}>Stop</button>
  </div>`;
}

function Detail({ stream, row, onClose }) {
  const names = stream.columns?.map((column) => `${column.name} ${column.type}`) ?? ["line"];
  const facts = names.map((name, at) => [name, html`<pre>${cellText(row[at]) ?? "null"}</pre>`]);
  return html`<${Dialog} title="Row" onClose=${onClose} wide><${Facts} facts=${facts} /><//>`;
}

/** The table of a RowStream with its buttons; scrolling up ends the following. */
export function RowTable({ stream }) {
  useUpdates(stream);
  const view = useRef(null);
  const [top, setTop] = useState(0);
  const [follows, setFollows] = useState(true);
  const [open, setOpen] = useState(null);
  const columns = useRef(null);
  const size = stream.rows.texts.length;
  if (!isLaidOut(columns.current, stream)) columns.current = layout(stream);
  useLayoutEffect(() => {
    if (follows && view.current) view.current.scrollTop = view.current.scrollHeight;
  });
  useEffect(() => setTop(view.current?.scrollTop ?? 0), [stream]);
  const onScroll = ({ target }) => {
    setTop(target.scrollTop);
    const atEnd = target.scrollTop + target.clientHeight >= target.scrollHeight - ROW_PX;
    if (!atEnd && target.scrollTop < top) setFollows(false);
  };
  const from = Math.max(Math.floor(top / ROW_PX) - MARGIN_ROWS, 0);
  const to = Math.min(from + 60 + 2 * MARGIN_ROWS, size);
  const shown = Array.from({ length: Math.max(to - from, 0) }, (_, at) => from + at);
  const { template, minWidth } = columns.current;
  const style = { gridTemplateColumns: template, minWidth };
  return html`<section class="rows" aria-label="Rows">
    <${Bar} stream=${stream} follows=${follows} setFollows=${setFollows} />
    <${ErrorBox} error=${stream.error} />
    ${stream.notes.map((note) => html`<p class="note">${note}</p>`)}
    <div class="grid" role="table" tabindex="0" ref=${view} onScroll=${onScroll} aria-rowcount=${size}>
      <div class="row head" role="row" style=${style}>
        ${stream.columns?.map(({ name, type }) => html`<span class="cell" role="columnheader"><b>${name}</b> <small>${type}</small></span>`)}
      </div>
      <div class="space" style=${{ height: `${size * ROW_PX}px`, minWidth }}>
        <div class="window" style=${{ transform: `translateY(${from * ROW_PX}px)`, "--columns": template }}>
          ${shown.map((index) => html`<${Row} key=${stream.rows.dropped + index} stream=${stream} index=${index} onOpen=${setOpen} />`)}
        </div>
      </div>
    </div>
    ${open && html`<${Detail} stream=${stream} row=${open} onClose=${() => setOpen(null)} />`}
  </section>`;
}

export { MOST_ROWS };
