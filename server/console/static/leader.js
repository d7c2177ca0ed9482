// The server that runs the queries, where it is another one than that of the page.

import { html } from "./vendor/preact.js";
import { live } from "./metrics.js";
import { useUpdates } from "./ui.js";

/** A link to the same page at the leader; a text while no server leads. */
export function LeaderLink() {
  useUpdates(live);
  if (live.leaderError !== null) return html`<span>${live.leaderError.message}</span>`;
  if (live.leader === null) return null;
  return html`<a href=${`${location.protocol}//${live.leader}/console${location.hash}`}>${live.leader}</a>`;
}

/** A note on a page with rates and lags: they are those of the leader. */
export function LeaderNote() {
  useUpdates(live);
  if (!live.follows) return null;
  if (live.leaderError !== null) return html`<p class="note" role="status">Rates, lags and charts are missing: ${live.leaderError.message}</p>`;
  return html`<p class="note" role="status">This server follows <${LeaderLink} />, which runs the queries. Rates, lags and charts are passed on from there.</p>`;
}
