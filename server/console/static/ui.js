// Small parts that all pages use.

import { html, useCallback, useEffect, useRef, useState } from "./vendor/preact.js";

/** Load something and again when `key` changes; gives `value`, `error`, `loading` and `reload`. */
export function useLoaded(load, key = "", everyMs = 0) {
  const [state, setState] = useState({ value: null, error: null, loading: true, key });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const once = async () => {
      try {
        const value = await load(abort.signal);
        if (!abort.signal.aborted) setState({ value, error: null, loading: false, key });
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((old) => ({ value: old.key === key ? old.value : null, error, loading: false, key }));
      }
      if (everyMs && !abort.signal.aborted) timer = setTimeout(once, everyMs);
    };
    setState((old) => (old.key === key ? { ...old, loading: true } : { value: null, error: null, loading: true, key }));
    once();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, turn, everyMs]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  return { ...state, reload };
}

/** Return what tries some work, and the error that the last try had. */
export function useAttempt() {
  const [error, setError] = useState(null);
  const attempt = async (work) => {
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    }
  };
  return [attempt, error];
}

/** Draw again each time that a source of changes tells of one. */
export function useUpdates(source) {
  const [, setTurn] = useState(0);
  useEffect(() => source?.subscribe(() => setTurn((old) => old + 1)), [source]);
}

/** An error, with its hint on further lines. */
export function ErrorBox({ error, children }) {
  if (!error) return null;
  return html`<div class="box bad" role="alert"><pre>${error.message}</pre>${children}</div>`;
}

/** A state as a coloured word. */
export function Badge({ state }) {
  const kinds = {
    RUNNING: "good", PAUSED: "warn", ERROR: "bad", UNRESPONSIVE: "bad", STALLED: "warn", REBUILDING: "info", switched: "good",
    refused: "bad", rolled_back: "warn", aborted: "warn", building: "info", begun: "info",
  };
  return html`<span class=${`badge ${kinds[state] ?? ""}`}>${state}</span>`;
}

/** A table of texts and elements: `columns` are heads, `rows` arrays of cells. */
export function Table({ columns, rows, empty = "None." }) {
  if (!rows.length) return html`<p class="dim">${empty}</p>`;
  return html`<div class="scroll" tabindex="0"><table>
    <thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** Names with their values; those without a value are left out. */
export function Facts({ facts }) {
  const there = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">${there.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** A dialog that keeps the keyboard within it; Escape closes it. */
export function Dialog({ title, onClose, wide = false, children }) {
  const element = useRef(null);
  useEffect(() => {
    element.current.showModal();
  }, []);
  return html`<dialog ref=${element} class=${wide ? "wide" : ""} aria-label=${title} onClose=${onClose}>
    <header><h2>${title}</h2>
      <button class="plain" aria-label="Close" onClick=${() => element.current.close()}>×</button></header>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/** A button that asks before it acts, in a dialog that says what will happen. */
export function Confirmed({ label, title, text, act, kind = "", disabled = false }) {
  const [open, setOpen] = useState(false);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      await act();
      setOpen(false);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const close = () => { setOpen(false); setError(null); };
  return html`<button class=${kind} disabled=${disabled} onClick=${() => setOpen(true)}>${label}</button>
    ${open && html`<${Dialog} title=${title} onClose=${close}>
      <p>${text}</p><${ErrorBox} error=${error} />
      <p class="buttons"><button class=${`main ${kind}`} disabled=${busy} onClick=${go}>${label}</button></p>
    <//>`}`;
}

/** A row of tabs: `tabs` are pairs of a key and a label. */
export function Tabs({ tabs, chosen, onChoose, label }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex(([key]) => key === chosen);
    onChoose(tabs[(at + step + tabs.length) % tabs.length][0]);
    event.currentTarget.querySelectorAll("[role=tab]")[(at + step + tabs.length) % tabs.length].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(([key, text]) => html`<button role="tab" aria-selected=${key === chosen} tabindex=${key === chosen ? 0 : -1}
      onClick=${() => onChoose(key)}>${text}</button>`)}
  </div>`;
}

/** A time as the reader's clock has it; the exact one is its title. */
export function Time({ ms }) {
  if (ms === null || ms === undefined) return html`<span class="dim">–</span>`;
  const moment = new Date(Number(ms));
  if (Number.isNaN(moment.getTime())) return html`<span>${String(ms)}</span>`;
  return html`<time datetime=${moment.toISOString()} title=${moment.toISOString()}>${timeText(moment)}</time>`;
}

const two = (number) => String(number).padStart(2, "0");

/** Return a moment as date and time of the reader's zone. */
export function timeText(moment) {
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  return `${day} ${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
}

/** Return a number with separators; a dash for one that is not known. */
export function count(number) {
  return number === null || number === undefined ? "–" : Number(number).toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** Return bytes in the unit that fits. */
export function bytes(size) {
  if (size === null || size === undefined) return "–";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(Math.floor(Math.log2(Math.max(size, 1)) / 10), units.length - 1);
  return `${count(size / 2 ** (10 * step))} ${units[step]}`;
}

/** Return the address of a page; each part is escaped. */
export function to(page, ...parts) {
  return `#/${[page, ...parts.map(encodeURIComponent)].join("/")}`;
}

export const sourceLink = (name) => html`<a href=${to("source", name)}>${name}</a>`;
export const topicLink = (name) => html`<a href=${to("topic", name)}>${name}</a>`;
export const queryLink = (id) => html`<a href=${to("query", id)}>${id}</a>`;
