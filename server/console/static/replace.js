// The replacement of a running query as a dialog: edit, compare, confirm, watch the switch.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { ApiError, get, one, quote, REPLACED_MEANWHILE, run } from "./api.js";
import { clauses, sideBySide } from "./diff.js";
import { Editor, mark } from "./editor.js";
import { modeOf, optionOf, replacementOf, withMode, withOption } from "./replacement.js";
import { offsetOf } from "./split.js";
import { Progress } from "./upgradeprogress.js";
import { UpgradeReport } from "./upgradereport.js";
import { Confirmed, Dialog, ErrorBox } from "./ui.js";

const WATCH_MS = 1_000;
const START = "START_MODE";
const MODES = [["", "in place"], ["auto", "in place, else rebuild"], ["rebuild", "rebuild"], ["backfill", "backfill of added aggregates"]];

/** Return what a replacement is of: the query's id, statement and plan, and its result as statements name it. */
export function targetOf(query) {
  const isInsert = /^\s*INSERT\b/i.test(query.statementText);
  const name = isInsert ? `QUERY ${quote(query.id)}` : quote(query.sinks[0]);
  return { id: query.id, statement: query.statementText, plan: query.planOffset, name };
}

/** Two statements, side by side. */
export function Difference({ left, right, titles = ["Running", "New"] }) {
  const rows = sideBySide(clauses(left), clauses(right));
  const side = (text, same, kind) => html`<div class=${text === null || same ? "" : kind}>${text ?? ""}</div>`;
  return html`<div class="diff" role="group" aria-label="Difference of the statements"><div class="heading">${titles[0]}</div><div class="heading">${titles[1]}</div>
    ${rows.map(({ left: old, right: fresh, same }) => html`${side(old, same, "removed")}${side(fresh, same, "added")}`)}</div>`;
}

/** Somebody else has replaced the query since the dialog was opened. */
class ReplacedMeanwhile extends ApiError {
  constructor() {
    super("The query was replaced meanwhile, by somebody else or in another tab.\nClose this dialog and begin with the statement that it has now.");
  }
}

async function explained(text, wantsSample) {
  const properties = wantsSample ? { "ksql.upgrade.explain.sample": "1000" } : {};
  const { queryDescription } = await one(`EXPLAIN ${text}`, { properties });
  if (queryDescription.upgrade) return queryDescription.upgrade;
  throw new ApiError("This statement replaces no running query.\nA replacement begins with CREATE OR REPLACE and names the same result.");
}

function Steps({ at }) {
  const names = ["Edit", "Compare", "Switch"];
  return html`<ol class="steps">${names.map((name, index) => html`<li aria-current=${index === at ? "step" : undefined}>${name}</li>`)}</ol>`;
}

function Edit({ text, setText, error, busy, onCompare }) {
  const view = useRef(null);
  const [sample, setSample] = useState(false);
  const [docId, setDocId] = useState(0);
  const keys = useMemo(() => [{ key: "Mod-Enter", run: () => (onCompare(sample), true) }], []);
  useEffect(() => {
    if (!view.current) return;
    const position = error?.position;
    const at = position ? offsetOf(text, position.line, position.column) - "EXPLAIN ".length : 0;
    mark(view.current, position ? [{ from: Math.max(at, 0), to: at + 1, message: error.message }] : []);
  }, [error]);
  const change = (next) => {
    setText(next);
    setDocId(docId + 1);
  };
  return html`<${Editor} docId=${docId} text=${text} onChange=${setText} keys=${keys} handle=${view} />
    <${ErrorBox} error=${error} />
    <div class="bar"><label>Mode <select aria-label="Mode" value=${modeOf(text)} onChange=${(event) => change(withMode(text, event.target.value))}>
        ${MODES.map(([key, label]) => html`<option value=${key}>${label}</option>`)}</select></label>
      <label>Read from <input aria-label="Read from" list="starts" size="20" placeholder="earliest" value=${optionOf(text, START)} disabled=${modeOf(text) === ""}
        title="START_MODE of a rebuild: earliest, now, or a time such as 2026-11-02T10:00:00" onChange=${(event) => change(withOption(text, START, event.target.value.trim()))} />
        <datalist id="starts"><option value="earliest" /><option value="now" /></datalist></label>
      <label><input type="checkbox" checked=${sample} onChange=${(event) => setSample(event.target.checked)} /> compare both plans over the last 1,000 records</label>
      <span class="grow"></span><button class="main" disabled=${busy} onClick=${() => onCompare(sample)}>Compare</button></div>`;
}

function Compare({ target, text, report, error, busy, onBack, onConfirm }) {
  return html`<${Difference} left=${replacementOf(target)} right=${text} />
    <${UpgradeReport} report=${report} /><${ErrorBox} error=${error} />
    <div class="bar"><button onClick=${onBack}>Back to the statement</button><span class="grow"></span>
      <button class="main" disabled=${!report.accepted || busy} onClick=${onConfirm}>Replace the query</button></div>
    ${!report.accepted && html`<p>It is refused, so the running query continues. Where a mode is possible, choose it in the first step.</p>`}`;
}

/** The latest upgrade of a query, watched until it has ended. */
export function Watched({ target, since, onEnd }) {
  const [upgrade, setUpgrade] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let timer = 0;
    const look = async () => {
      try {
        const { upgrades } = await get(`/upgrades?query=${encodeURIComponent(target.id)}`);
        const latest = upgrades.find(({ id }) => id !== since) ? upgrades[0] : null;
        setUpgrade(latest);
        setError(null);
        if (latest && !["building", "begun"].includes(latest.status)) return onEnd?.(latest);
      } catch (problem) {
        setError(problem);
      }
      timer = setTimeout(look, WATCH_MS);
      return undefined;
    };
    look();
    return () => clearTimeout(timer);
  }, [target.id]);
  return html`<div class="watch"><${ErrorBox} error=${error} />${upgrade && html`<${Progress} upgrade=${upgrade} />
    ${upgrade.status === "building" && html`<p class="buttons"><${Confirmed} label="Abort" kind="danger" title="Abort the rebuild"
      text="The query continues as it is. What was built is deleted." act=${() => run(`ABORT UPGRADE OF ${target.name};`)} /></p>`}`}</div>`;
}

function Switched({ target, done, onClose }) {
  return html`<p class="verdict good" role="status">${done.message}</p>
    ${done.report && html`<${UpgradeReport} report=${done.report} />`}
    ${done.isRebuild && html`<${Watched} target=${target} />`}
    <p class="buttons"><button class="main" onClick=${onClose}>Close</button></p>`;
}

/** Replace the plan that the dialog has begun with; the server refuses if another one runs by now. */
async function replace(text, { plan }) {
  const properties = plan === undefined ? {} : { "ksql.upgrade.expected.offset": String(plan) };
  const { commandStatus, upgrade, warnings } = await one(text, { properties }).catch((error) => {
    throw error.code === REPLACED_MEANWHILE ? new ReplacedMeanwhile() : error;
  });
  const isRebuild = upgrade !== undefined && upgrade.switch === undefined;
  return { message: [commandStatus.message, ...warnings.map(({ message }) => message)].join("\n"), report: isRebuild ? null : upgrade, isRebuild };
}

/** The dialog; `text` is the statement to begin with, null for that of the query. */
export function ReplaceDialog({ target: given, text: begun, onClose }) {
  const [target] = useState(given);
  const [text, setText] = useState(begun ? replacementOf({ id: target.id, statement: begun }) : replacementOf(target));
  const [step, setStep] = useState(0);
  const [report, setReport] = useState(null);
  const [done, setDone] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const latest = useRef(text);
  latest.current = text;
  const attempt = async (work) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const ended = () => (latest.current.trim().endsWith(";") ? latest.current.trim() : `${latest.current.trim()};`);
  const compare = (sample) => attempt(async () => {
    setReport(await explained(ended(), sample));
    setStep(1);
  });
  const confirm = () => attempt(async () => {
    setDone(await replace(ended(), target));
    setStep(2);
  });
  return html`<${Dialog} title=${`Replace ${target.id}`} onClose=${onClose} wide>
    <${Steps} at=${step} />
    ${step === 0 && html`<${Edit} text=${text} setText=${setText} error=${error} busy=${busy} onCompare=${compare} />`}
    ${step === 1 && html`<${Compare} target=${target} text=${ended()} report=${report} error=${error} busy=${busy}
      onBack=${() => { setError(null); setStep(0); }} onConfirm=${confirm} />`}
    ${step === 2 && html`<${Switched} target=${target} done=${done} onClose=${onClose} />`}
  <//>`;
}
