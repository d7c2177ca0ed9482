// JSON whose numbers keep their digits: BIGINT and DECIMAL do not fit into the numbers of a browser.

/** A number as the server wrote it. */
export class Exact {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

function keep(_key, value, context) {
  const inexact = typeof value === "number" && context !== undefined && String(value) !== context.source;
  return inexact ? new Exact(context.source) : value;
}

/** Return the value of a JSON text; numbers that a browser would change are of the class Exact. */
export function parse(text) {
  return JSON.parse(text, keep);
}

/** Return the JSON text of a value that `parse` has given. */
export function stringify(value) {
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${stringify(member)}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Return a value of a row as the text of its cell; NULL is not a text and gives null. */
export function cellText(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  return typeof value === "object" && !(value instanceof Exact) ? stringify(value) : String(value);
}
