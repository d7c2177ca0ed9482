// The editor's page: tabs, history, and the results of what was run.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { Answer } from "../answer.js";
import { loadCatalogue } from "../catalogue.js";
import { Editor, mark } from "../editor.js";
import { RowTable } from "../rowtable.js";
import { clearHistory, remembered, tabs } from "../workbench.js";
import { Dialog, ErrorBox, Time, useUpdates } from "../ui.js";

function TabBar() {
  const current = tabs.current;
  return html`<div class="tabs editor-tabs" role="tablist" aria-label="Editor tabs">
    ${tabs.list.map((tab) => html`<span class="closable" key=${tab.id}>
      <button role="tab" aria-selected=${tab === current} onClick=${() => tabs.choose(tab.id)}>${tab.title}${tab.runner.isRunning ? " ●" : ""}</button>
      ${tabs.list.length > 1 && html`<button class="plain" aria-label=${`Close ${tab.title}`} onClick=${() => tabs.close(tab.id)}>×</button>`}
    </span>`)}
    <button class="plain" aria-label="New tab" title="New tab" onClick=${() => tabs.add()}>+</button>
  </div>`;
}

function SessionChips({ tab }) {
  const { properties, variables } = tab.session;
  const chips = [...Object.entries(properties), ...Object.entries(variables).map(([name, value]) => [`\${${name}}`, value])];
  if (!chips.length) return null;
  return html`<p class="chips" aria-label="Settings of this tab">${chips.map(([name, value]) => html`<code>${name} = ${value}</code>`)}</p>`;
}

function History({ onTake, onClose }) {
  const [filter, setFilter] = useState("");
  const [entries, setEntries] = useState(remembered());
  const shown = entries.filter(({ text }) => text.toLowerCase().includes(filter.toLowerCase()));
  return html`<${Dialog} title="History" onClose=${onClose} wide>
    <p class="buttons"><input type="search" aria-label="Filter" placeholder="Filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <button onClick=${() => { clearHistory(); setEntries([]); }} disabled=${!entries.length}>Clear</button></p>
    ${!shown.length && html`<p class="dim">Nothing was run yet.</p>`}
    <ul class="history">${shown.map((entry) => html`<li>
      <button class="plain entry" onClick=${() => onTake(entry.text)}><pre>${entry.text.slice(0, 600)}</pre>
        <small><${Time} ms=${entry.at} /> ${entry.failed ? "failed" : ""}</small></button></li>`)}</ul>
  <//>`;
}

function Result({ result, onPlace }) {
  const { statement, error, entities, stream, said } = result;
  const position = error?.position ?? stream?.error?.position;
  return html`<article class="result" aria-label=${statement.text.slice(0, 80)}>
    <header><code title=${statement.text.slice(0, 1000)}>${statement.text.replace(/\s+/g, " ").slice(0, 160)}</code>
      ${result.pending && html`<span class="badge info">running</span>`}</header>
    ${position && result.place && html`<p><button class="plain link" onClick=${() => onPlace(result)}>Go to line ${result.place.line}, column ${result.place.column}</button></p>`}
    <${ErrorBox} error=${error} />
    ${said && html`<p>${said}</p>`}
    ${entities?.map((entity) => html`<${Answer} entity=${entity} />`)}
    ${stream && html`<${RowTable} stream=${stream} />`}
  </article>`;
}

function Results({ runner, onPlace }) {
  useUpdates(runner);
  if (!runner.results.length) {
    return html`<p class="dim">Ctrl+Enter runs the selection, or else all statements of the tab. Rows of a query follow here.</p>`;
  }
  return html`${runner.results.map((result, at) => html`<${Result} key=${`${runner.turn}-${at}`} result=${result} onPlace=${onPlace} />`)}`;
}

/** The page. */
export function StatementsPage() {
  useUpdates(tabs);
  const tab = tabs.current;
  const view = useRef(null);
  const [history, setHistory] = useState(false);
  const runner = tab.runner;
  useUpdates(runner);
  useEffect(() => { loadCatalogue().catch(() => {}); }, []); // the connection's notice says it
  useEffect(() => runner.subscribe(() => view.current && mark(view.current, runner.marks)), [runner]);
  const run = () => {
    const { from, to } = view.current.state.selection.main;
    const text = view.current.state.doc.toString();
    runner.run(tab, from === to ? text : text.slice(from, to), from === to ? 0 : from);
    return true;
  };
  const goTo = (result) => {
    view.current.dispatch({ selection: { anchor: Math.min(result.place.at, view.current.state.doc.length) }, scrollIntoView: true });
    view.current.focus();
  };
  const take = (text) => {
    const { state } = view.current;
    const at = state.doc.length;
    view.current.dispatch({ changes: { from: at, insert: `${at && !state.doc.toString().endsWith("\n") ? "\n" : ""}${text}\n` } });
    setHistory(false);
    view.current.focus();
  };
  const keys = useMemo(() => [
    { key: "Mod-Enter", run: () => run() }, { key: "Shift-Enter", run: () => run() },
  ], [tab.id]);
  return html`<div class="workbench">
    <${TabBar} />
    <${Editor} docId=${tab.id} text=${tab.text} onChange=${(text) => tabs.edit(tab, text)} keys=${keys} handle=${view} />
    <div class="bar">
      <button class="main" onClick=${run} disabled=${runner.isRunning}>Run</button>
      <button onClick=${() => runner.stop()} disabled=${!runner.isRunning}>Stop</button>
      <label>Queries read from <select value=${tab.offset} onChange=${(event) => tabs.setOffset(tab, event.target.value)}>
        <option value="latest">now on</option><option value="earliest">the beginning</option></select></label>
      <button onClick=${() => setHistory(true)}>History</button>
    </div>
    <${SessionChips} tab=${tab} />
    ${!tabs.isKept && html`<p class="note" role="status">This browser has no room for the texts of the tabs: they end with this page.</p>`}
    <div class="results"><${Results} runner=${runner} onPlace=${goTo} /></div>
    ${history && html`<${History} onTake=${take} onClose=${() => setHistory(false)} />`}
  </div>`;
}

