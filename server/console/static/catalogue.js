// What the catalog has, kept for completion and lists; read again after each statement that may change it.

import { quote, run } from "./api.js";
import { stringify } from "./exact.js";

const listeners = new Set();

/** The catalog as it was last read; `names` are sources, `columns` those of each that was asked for. */
export const catalogue = {
  streams: [],
  tables: [],
  types: {},
  functions: [],
  columns: new Map(),
  subscribe(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

function tell() {
  for (const listener of listeners) listener();
}

/** Return the SQL text of a type as the API describes it. */
export function typeText(schema) {
  switch (schema.type) {
    case "ARRAY":
      return `ARRAY<${typeText(schema.memberSchema)}>`;
    case "MAP":
      return `MAP<${typeText(schema.keySchema ?? { type: "STRING" })}, ${typeText(schema.memberSchema)}>`;
    case "STRUCT":
      return `STRUCT<${schema.fields.map((field) => `${quote(field.name)} ${typeText(field.schema)}`).join(", ")}>`;
    case "DECIMAL":
      return `DECIMAL(${schema.parameters.precision}, ${schema.parameters.scale})`;
    default:
      return schema.type;
  }
}

/** Read the names of sources, types and functions. */
export async function loadCatalogue(signal) {
  const [streams, tables, types, functions] = await run("SHOW STREAMS; SHOW TABLES; SHOW TYPES; SHOW FUNCTIONS;", {}, signal);
  const before = stringify([catalogue.streams, catalogue.tables]);
  Object.assign(catalogue, {
    streams: streams.streams, tables: tables.tables, types: types.types, functions: functions.functions,
  });
  if (before !== stringify([catalogue.streams, catalogue.tables])) catalogue.columns.clear();
  tell();
  return catalogue;
}

/** Return the columns of a source for completion; an empty list while they are being read or if there are none. */
export async function columnsOf(name) {
  if (!catalogue.columns.has(name)) {
    catalogue.columns.set(name, describe(name));
  }
  return catalogue.columns.get(name);
}

async function describe(name) {
  try {
    const [answer] = await run(`DESCRIBE ${quote(name)};`);
    return answer.sourceDescription.fields.map((field) => ({ name: field.name, type: typeText(field.schema) }));
  } catch {
    catalogue.columns.delete(name); // it is gone, or the server is: completion does without
    return [];
  }
}
