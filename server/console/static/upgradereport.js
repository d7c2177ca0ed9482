// The report of a replacement: class, changes with their verdicts, guarantees, modes, what a rebuild reads.

import { html } from "./vendor/preact.js";
import { cellText } from "./exact.js";
import { bytes, count, Facts, Table, Time } from "./ui.js";

const MODES = { in_place: "in place", rebuild: "rebuild", backfill: "backfill", rollback: "roll back" };

/** Return the word for a mode. */
export function modeText(mode) {
  return MODES[mode] ?? mode;
}

function Changes({ changes }) {
  const rows = changes.map((change) => [
    html`<span class=${`badge ${change.allowed ? "good" : "bad"}`}>${change.allowed ? "allowed" : "not in place"}</span>`,
    change.clause, html`<code>${change.text}</code>`, change.kind,
  ]);
  return html`<h3>Changes</h3><${Table} columns=${["Verdict", "Clause", "Change", "Class"]} rows=${rows} empty="No change." />`;
}

function Guarantees({ guarantees }) {
  if (!guarantees.length) return null;
  const rows = guarantees.map(({ name, holds, note }) => [
    name, html`<span class=${`badge ${holds ? "good" : "warn"}`}>${holds ? "yes" : "no"}</span>`, note,
  ]);
  return html`<h3>Guarantees</h3><${Table} columns=${["Guarantee", "Holds", "Meaning"]} rows=${rows} />`;
}

function Modes({ modes }) {
  if (!modes) return null;
  const rows = modes.map(({ mode, possible, reasons }) => [
    modeText(mode), html`<span class=${`badge ${possible ? "good" : "bad"}`}>${possible ? "possible" : "not possible"}</span>`,
    reasons.map((reason) => html`<div>${reason}</div>`),
  ]);
  return html`<h3>Modes</h3><${Table} columns=${["Mode", "", "Why not"]} rows=${rows} />`;
}

function Reads({ reads, estimate }) {
  if (!reads) return null;
  const rows = reads.map((read) => [
    read.source, read.topic, `${read.compacted ? "at most " : ""}${count(read.records)}`, bytes(read.bytes), count(read.lost),
    html`<${Time} ms=${read.begins} />`,
  ]);
  return html`<h3>A rebuild would read</h3>
    <${Table} columns=${["Source", "Topic", "Records", "Bytes, about", "Lost", "Topic begins"]} rows=${rows} />
    ${estimate && html`<${Facts} facts=${[
      ["Takes about", `${count(estimate.seconds)} s at ${count(estimate.rate)} records/s (${estimate.rateFrom})`],
      ["Second state", estimate.stateBytes === null ? "" : `about ${bytes(estimate.stateBytes)}; ${bytes(estimate.freeBytes)} are free`],
      ["Results since", estimate.resultsSince === null ? "" : html`<${Time} ms=${estimate.resultsSince} />`],
    ]} />`}`;
}

const rowText = (row) => (row === null ? "–" : Object.entries(row).map(([name, value]) => `${name}=${cellText(value)}`).join(", "));

function Sample({ sample }) {
  if (!sample) return null;
  const rows = sample.rows.map(({ key, old, new: fresh }) => [rowText(key), rowText(old), rowText(fresh)]);
  return html`<h3>Both plans over the last ${count(sample.records)} records</h3>
    <p>${count(sample.oldRows)} results before, ${count(sample.newRows)} after; ${count(sample.different)} differ.
      ${sample.complete ? "" : ` The sample is not whole. ${sample.trouble}`}</p>
    <${Table} columns=${["Key", "Old row", "New row"]} rows=${rows} empty="No row differs." />`;
}

function Switch({ at }) {
  if (!at) return null;
  const offsets = Object.entries(at.offsets).flatMap(([topic, partitions]) =>
    Object.entries(partitions).map(([partition, offset]) => `${topic}/${partition} at ${offset}`));
  return html`<${Facts} facts=${[
    ["Switched", at.batchId === null ? "" : `after batch ${at.batchId}`], ["Gap", at.gapMs === null ? "" : `${count(at.gapMs)} ms`],
    ["New plan begins", offsets.join(", ")],
  ]} />`;
}

/** Return in words what would become of a replacement, or has become of it. */
export function verdictOf(report) {
  const mode = report.mode ? `, ${modeText(report.mode)}` : "";
  return `${report.accepted ? "Accepted" : "Refused"}${mode}: ${report.classes.join(", ")}`;
}

/** The whole report. */
export function UpgradeReport({ report }) {
  return html`<div class="report">
    <p class=${`verdict ${report.accepted ? "good" : "bad"}`} data-test="verdict">${verdictOf(report)}</p>
    ${report.traits.length > 0 && html`<p>The query is ${report.traits.join(", ")}.</p>`}
    ${report.reasons.map((reason) => html`<p class="note">${reason}</p>`)}
    <${Switch} at=${report.switch} />
    <${Changes} changes=${report.changes} />
    <${Modes} modes=${report.modes} />
    <${Guarantees} guarantees=${report.guarantees} />
    <${Reads} reads=${report.reads} estimate=${report.estimate} />
    <${Sample} sample=${report.sample} />
    ${report.inherited.length > 0 && html`<h3>Inherited settings</h3><ul>${report.inherited.map((each) => html`<li>${each}</li>`)}</ul>`}
  </div>`;
}
