// The servers of the service: which one leads, their copies of tables and how far these are, health.

import { html } from "../vendor/preact.js";
import { get } from "../api.js";
import { LeaderLink } from "../leader.js";
import { live } from "../metrics.js";
import { bytes, count, ErrorBox, Facts, Table, Time, useLoaded, useUpdates } from "../ui.js";

const EVERY_MS = 3_000;

function Health({ report }) {
  const rows = Object.entries(report.details).map(([part, { isHealthy, reason }]) => [
    part, html`<span class=${`badge ${isHealthy ? "good" : "bad"}`}>${isHealthy ? "healthy" : "not healthy"}</span>`, reason ?? "",
  ]);
  return html`<p class=${`verdict ${report.isHealthy ? "good" : "bad"}`} role="status">${report.isHealthy ? "All is well" : "Something is wrong"} (${report.serverState})</p>
    <${Table} columns=${["Part", "", "Reason"]} rows=${rows} />`;
}

const all = (list, name) => list.flatMap((entry) => entry[name]);

function worstLag(status) {
  const lags = Object.values(status.hostStoreLags.stateStoreLags).flatMap(({ lagByPartition }) => Object.values(lagByPartition));
  return lags.length ? Math.max(...lags.map(({ offsetLag }) => Number(offsetLag))) : null;
}

function Servers({ cluster }) {
  const rows = Object.entries(cluster.clusterStatus).map(([host, status]) => {
    const holds = Object.values(status.activeStandbyPerQuery);
    return [
      host, html`<span class=${`badge ${status.hostAlive ? "good" : "bad"}`}>${status.hostAlive ? "alive" : "silent"}</span>`, html`<${Time} ms=${status.lastStatusUpdateMs} />`,
      count(all(holds, "activePartitions").length), count(all(holds, "standByPartitions").length), count(worstLag(status)),
    ];
  });
  return html`<${Table} columns=${["Server", "", "Last heard", "Active partitions", "Standby partitions", "Largest lag, records"]} rows=${rows} />`;
}

function Standings({ value }) {
  const rows = Object.entries(value.standings).flatMap(([query, partitions]) =>
    Object.entries(partitions).map(([partition, copy]) => [
      query, partition, copy.state, copy.role, count(copy.position), count(copy.offsetLag), copy.timeLagMs === null ? "–" : `${count(copy.timeLagMs / 1000)} s`,
    ]));
  return html`<${Table} columns=${["Query", "Partition", "State", "Role", "Position", "Lag, records", "Lag, time"]} rows=${rows} empty="This server holds no replicas." />`;
}

function ThisServer({ info }) {
  const memory = (live.raw.get("ksql_memory_bytes") ?? []).map(({ labels, value }) => `${labels.process} ${bytes(value)}`).join(", ");
  const host = live.raw.get("ksql_server_info")?.[0]?.labels.host;
  const leads = live.value("ksql_leader");
  return html`<${Facts} facts=${[
    ["Address", host], ["Role", leads === null ? "" : leads === 1 ? "leads: it runs the queries" : "follows"], ["Leader", live.follows ? html`<${LeaderLink} />` : null], ["Version", info.version], ["Service", info.ksqlServiceId],
    ["Kafka cluster", info.kafkaClusterId], ["Servers alive", count(live.value("ksql_members"))], ["Commands", `${info.serverStatus}, position ${count(live.value("ksql_command_topic_position"))}`],
    ["Memory", memory],
  ]} />`;
}

function Part({ title, part, show }) {
  return html`<section><h2>${title}</h2><${ErrorBox} error=${part.reason} />${part.value && show(part.value)}</section>`;
}

async function servers(signal) {
  const answer = await get("/clusterStatus", { signal, also: [404] });
  return answer.clusterStatus ? answer : { off: answer.message };
}

const showServers = (value) => (value.off
  ? html`<p class="dim">Servers do not tell each other that they live: ksql.heartbeat.enable is false.</p>`
  : html`<${Servers} cluster=${value} />`);

/** Load all parts together, so that none pushes another one away. */
function load(signal) {
  return Promise.allSettled([
    get("/healthcheck", { signal, also: [503] }), get("/info", { signal }), servers(signal), get("/stores/standings", { signal }),
  ]);
}

/** The page. */
export function ClusterPage() {
  useUpdates(live);
  const { value } = useLoaded(load, "", EVERY_MS);
  if (value === null || !live.at) return html`<h1>Cluster</h1><div class="loading"></div>`;
  const [health, info, hosts, standings] = value;
  return html`<h1>Cluster</h1>
    <${Part} title="Health of this server" part=${health} show=${(report) => html`<${Health} report=${report} />`} />
    <${Part} title="This server" part=${info} show=${({ KsqlServerInfo }) => html`<${ThisServer} info=${KsqlServerInfo} />`} />
    <${Part} title="Servers" part=${hosts} show=${showServers} />
    <${Part} title="Replicas of tables at this server" part=${standings} show=${(each) => html`<${Standings} value=${each} />`} />`;
}
