// The metrics of the server, from /metrics: rates of queries, their lags and states.

import { getText } from "./api.js";

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPED = { n: "\n", '"': '"', "\\": "\\" };
const POLL_MS = 2_000;

/** Parse Prometheus' text; by name a list of samples with `labels` and `value`. */
export function parseMetrics(text) {
  const byName = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : LINE.exec(line);
    if (match === null) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_all, sign) => ESCAPED[sign] ?? sign);
    }
    if (!byName.has(match[1])) byName.set(match[1], []);
    byName.get(match[1]).push({ labels, value: Number(match[3]) });
  }
  return byName;
}

function newQuery(id) {
  return {
    id, sink: "", state: "RUNNING", in: 0, out: 0, late: 0, failed: 0, lagRecords: 0, lagSeconds: null, batches: 0,
    batchSeconds: 0, stateRows: 0, stateBytes: 0, restarts: 0, stalled: false, rebuilding: false, lags: [], runs: false,
  };
}

const INTO = {
  ksql_query_records_in_total: (query, sample) => { query.in += sample.value; query.runs = true; },
  ksql_query_records_out_total: (query, sample) => { query.out += sample.value; },
  ksql_query_records_skipped_total: (query, sample) => { query[sample.labels.reason] = sample.value; },
  ksql_query_lag_records: (query, sample) => {
    query.lagRecords += sample.value;
    query.lags.push({ ...sample.labels, records: sample.value });
  },
  ksql_query_lag_seconds: (query, sample) => { query.lagSeconds = Math.max(query.lagSeconds ?? 0, sample.value); },
  ksql_query_batch_duration_seconds_count: (query, sample) => { query.batches = sample.value; },
  ksql_query_batch_duration_seconds_sum: (query, sample) => { query.batchSeconds = sample.value; },
  ksql_query_state_rows: (query, sample) => { query.stateRows += sample.value; },
  ksql_query_state_bytes: (query, sample) => { query.stateBytes += sample.value; },
  ksql_query_restarts_total: (query, sample) => { query.restarts += sample.value; },
  ksql_query_stalled: (query, sample) => { query.stalled = sample.value === 1; },
  ksql_rebuild_records_read: (query) => { query.rebuilding = true; },
};

/** Return the queries of parsed metrics by id; their counters are sums since the server began. */
export function queriesOf(metrics) {
  const queries = new Map();
  for (const { labels } of metrics.get("ksql_query_info") ?? []) {
    queries.set(labels.query, { ...newQuery(labels.query), sink: labels.sink });
  }
  for (const { labels, value } of metrics.get("ksql_query_state") ?? []) {
    if (value === 1 && queries.has(labels.query)) queries.get(labels.query).state = labels.state;
  }
  for (const [name, put] of Object.entries(INTO)) {
    for (const sample of metrics.get(name) ?? []) {
      const query = queries.get(sample.labels.query);
      if (query) put(query, sample);
    }
  }
  return queries;
}

/** The latest metrics, polled while a page shows them and the window is visible. */
class LiveMetrics {
  constructor() {
    this.listeners = new Set();
    this.timer = 0;
    this.raw = new Map();
    this.queries = new Map();
    this.at = 0;
    this.error = null;
    this.leader = null;
    this.leaderError = null;
  }

  subscribe(listener) {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.poll();
    return () => {
      this.listeners.delete(listener);
      if (!this.listeners.size) clearTimeout(this.timer);
    };
  }

  async poll() {
    clearTimeout(this.timer);
    if (!document.hidden) await this.look();
    for (const listener of this.listeners) listener();
    clearTimeout(this.timer);
    if (this.listeners.size) this.timer = setTimeout(() => this.poll(), POLL_MS);
  }

  async look() {
    try {
      const now = performance.now();
      this.raw = parseMetrics(await getText("/metrics"));
      const leading = this.value("ksql_leader") === 0 ? await this.lookAtLeader() : this.raw;
      this.queries = withRates(queriesOf(leading), this.queries, (now - this.at) / 1000);
      this.at = now;
      this.error = null;
    } catch (error) {
      this.error = error;
      this.at ||= performance.now();
    }
  }

  /** Return the metrics of the server that runs the queries, which this one passes on. */
  async lookAtLeader() {
    try {
      const metrics = parseMetrics(await getText("/metrics?server=leader"));
      this.leader = metrics.get("ksql_server_info")?.[0]?.labels.host ?? null;
      this.leaderError = null;
      return metrics;
    } catch (error) {
      this.leaderError = error;
      return new Map();
    }
  }

  /** Whether another server runs the queries. */
  get follows() {
    return this.value("ksql_leader") === 0;
  }

  /** The value of a metric without labels; null if it is not there. */
  value(name) {
    return this.raw.get(name)?.[0]?.value ?? null;
  }
}

function withRates(queries, before, seconds) {
  for (const query of queries.values()) {
    const old = before.get(query.id);
    query.rate = rateOf(query.in, old?.in, seconds, old?.rate);
    query.rateOut = rateOf(query.out, old?.out, seconds, old?.rateOut);
  }
  return queries;
}

function rateOf(now, before, seconds, rate) {
  if (before === undefined || now < before) return null;
  const fresh = (now - before) / Math.max(seconds, 0.001);
  return rate === null || rate === undefined ? fresh : (fresh + rate) / 2;
}

export const live = new LiveMetrics();
