// How far an upgrade is.

import { html } from "./vendor/preact.js";
import { modeText } from "./upgradereport.js";
import { Badge, bytes, count, Facts, Time } from "./ui.js";

/** The state of an upgrade; of a rebuild under way, its progress. */
export function Progress({ upgrade }) {
  const { progress } = upgrade;
  return html`<section aria-label="Progress of the upgrade">
    <p><${Badge} state=${upgrade.status} /> ${modeText(upgrade.mode)}</p>
    ${progress && html`<progress max="100" value=${progress.percent} aria-label="Records read">${progress.percent} %</progress>
      <${Facts} facts=${[
        ["Read", `${progress.percent} %: ${count(progress.recordsRead)} records, ${count(progress.recordsLeft)} are left`],
        ["Speed", `${count(progress.recordsPerSecond)} records/s`], ["State", bytes(progress.stateBytes)],
        ["Estimated end", progress.estimatedEnd === null ? "" : html`<${Time} ms=${progress.estimatedEnd} />`], ["Trouble", progress.trouble],
      ]} />`}</section>`;
}
