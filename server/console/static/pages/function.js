// A function with its help.

import { html } from "../vendor/preact.js";
import { one, quote } from "../api.js";
import { ErrorBox, Facts, useLoaded } from "../ui.js";

function signature(name, overload) {
  const given = overload.arguments.map(({ name: argument, type, isVariadic }) => `${argument} ${type}${isVariadic ? ", .." : ""}`);
  return `${name}(${given.join(", ")}) → ${overload.returnType}`;
}

function Overload({ name, overload }) {
  const about = overload.arguments.filter(({ description }) => description).map(({ name: argument, description }) => [argument, description]);
  return html`<section><h3><code>${signature(name, overload)}</code></h3>
    ${overload.description && html`<p>${overload.description}</p>`}<${Facts} facts=${about} /></section>`;
}

/** The page of the function that the address names. */
export function FunctionPage({ parts: [name] }) {
  const { value, error } = useLoaded((signal) => one(`DESCRIBE FUNCTION ${quote(name)};`, {}, signal), name);
  return html`<div class="loading"><h1>${name}</h1><${ErrorBox} error=${error} />
    ${value && html`<p>${value.description}</p>
      <${Facts} facts=${[["Kind", value.type.toLowerCase()], ["Author", value.author], ["Version", value.version], ["File", value.path]]} />
      <h2>Forms</h2>${value.functions.map((overload) => html`<${Overload} name=${value.name} overload=${overload} />`)}`}</div>`;
}
