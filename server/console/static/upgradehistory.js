// The history of a query's upgrades: each in full, and the way back.

import { html, useState } from "./vendor/preact.js";
import { get, run } from "./api.js";
import { Difference, targetOf, Watched } from "./replace.js";
import { modeText, UpgradeReport } from "./upgradereport.js";
import { Badge, Confirmed, count, Dialog, ErrorBox, Facts, Table, Time, useLoaded } from "./ui.js";

const REBUILT = new Set(["rebuild", "backfill", "rollback"]);

function reportOf(upgrade) {
  const { reasons, traits, changes, guarantees, inherited, classes, status, mode } = upgrade;
  return { accepted: status !== "refused", mode, reasons, traits, changes, guarantees, inherited, classes };
}

function Details({ id, onClose, onReplace }) {
  const { value, error } = useLoaded((signal) => get(`/upgrades/${encodeURI(id)}`, { signal }), id);
  const upgrade = value?.upgradeDescription;
  const rows = upgrade?.difference && Object.entries(upgrade.difference).map(([name, number]) => `${count(number)} ${name}`).join(", ");
  return html`<${Dialog} title=${`Upgrade ${id}`} onClose=${onClose} wide><${ErrorBox} error=${error} />
    ${upgrade && html`<${Facts} facts=${[
        ["Status", html`<${Badge} state=${upgrade.status} />`], ["Begun", html`<${Time} ms=${upgrade.begun} />`], ["Finished", html`<${Time} ms=${upgrade.finished} />`],
        ["User", upgrade.user], ["Gap", upgrade.gapMs === null ? "" : `${count(upgrade.gapMs)} ms`], ["Rows", rows], ["Outcome", upgrade.outcome],
      ]} />
      <${Difference} left=${upgrade.formerStatement} right=${upgrade.statement} titles=${["Before", "After"]} />
      <p class="buttons"><button onClick=${() => onReplace(upgrade.formerStatement)}>Replace by the statement before…</button></p>
      <${UpgradeReport} report=${reportOf(upgrade)} />`}<//>`;
}

/** The list, and what can be done with the latest; one under way can be watched. */
export function UpgradeHistory({ query, onReplace }) {
  const [open, setOpen] = useState(null);
  const [watching, setWatching] = useState(false);
  const target = targetOf(query);
  const { value, error, reload } = useLoaded((signal) => get(`/upgrades?query=${encodeURIComponent(query.id)}`, { signal }), query.id, 5_000);
  const upgrades = value?.upgrades ?? [];
  const isBuilding = upgrades.some(({ status }) => status === "building");
  const canRollBack = !isBuilding && upgrades.some(({ status, mode }) => status === "switched" && REBUILT.has(mode));
  const rows = upgrades.map((upgrade) => [
    html`<button class="plain link" onClick=${() => setOpen(upgrade.id)}><${Time} ms=${upgrade.begun} /></button>`, modeText(upgrade.mode), upgrade.classes.join(", "),
    html`<${Badge} state=${upgrade.status} /> ${upgrade.progress ? `${upgrade.progress.percent} %` : ""}`, upgrade.gapMs === null ? "–" : `${count(upgrade.gapMs)} ms`, upgrade.user ?? "–",
  ]);
  const back = async () => {
    await run(`ROLLBACK UPGRADE OF ${target.name};`);
    reload();
  };
  return html`<${ErrorBox} error=${error} />
    ${value && html`<${Table} columns=${["Begun", "Mode", "Class", "Status", "Gap", "User"]} rows=${rows} empty="This query was never replaced." />`}
    <p class="buttons"><button disabled=${!isBuilding} onClick=${() => setWatching(true)}>Watch the rebuild</button>
      <${Confirmed} label="Roll back" title="Roll back the last rebuild" act=${back} disabled=${!canRollBack}
        text="The version that ran before the last cut-over reads what has come since, and takes over again." /></p>
    ${watching && html`<${Dialog} title=${`Rebuild of ${query.id}`} onClose=${() => setWatching(false)}><${Watched} target=${target} onEnd=${reload} /><//>`}
    ${open && html`<${Details} id=${open} onClose=${() => setOpen(null)} onReplace=${(statement) => { setOpen(null); onReplace(statement); }} />`}`;
}
