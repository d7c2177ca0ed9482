// The settings and variables of a tab: SET, UNSET, DEFINE and UNDEFINE act here, as in the terminal.

const SET = /^SET\s+'((?:[^']|'')*)'\s*=\s*'((?:[^']|'')*)'\s*;$/i;
const UNSET = /^UNSET\s+'((?:[^']|'')*)'\s*;$/i;
const DEFINE = /^DEFINE\s+([A-Za-z_]\w*)\s*=\s*'((?:[^']|'')*)'\s*;$/i;
const UNDEFINE = /^UNDEFINE\s+([A-Za-z_]\w*)\s*;$/i;

const plain = (text) => text.replaceAll("''", "'");

/** Return an empty session. */
export function newSession() {
  return { properties: {}, variables: {} };
}

function without(map, name) {
  const { [name]: _gone, ...rest } = map;
  return rest;
}

/** Return the session after a statement, and what to say of it; null for a statement of another kind. */
export function sessionAfter(statement, session) {
  const { properties, variables } = session;
  let match = SET.exec(statement);
  if (match) {
    const [name, value] = [plain(match[1]), plain(match[2])];
    return { session: { variables, properties: { ...properties, [name]: value } }, said: `${name} is now ${value} in this tab.` };
  }
  match = UNSET.exec(statement);
  if (match) {
    const name = plain(match[1]);
    return { session: { variables, properties: without(properties, name) }, said: `${name} has its default in this tab.` };
  }
  match = DEFINE.exec(statement);
  if (match) {
    const [name, value] = [match[1], plain(match[2])];
    return { session: { properties, variables: { ...variables, [name]: value } }, said: `${name} is ${value} in this tab.` };
  }
  match = UNDEFINE.exec(statement);
  if (match) {
    return { session: { properties, variables: without(variables, match[1]) }, said: `${match[1]} is not defined in this tab.` };
  }
  return null;
}

/** Return whether a statement answers with rows. */
export function isQuery(statement) {
  return /^\(*\s*(SELECT|PRINT)\b/i.test(statement);
}
