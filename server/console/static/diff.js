// The difference of two texts, line by line, for two columns side by side.

/** Return a statement with a line for each clause, so that two of them can be compared. */
export function clauses(statement) {
  const clause =
    /('(?:[^']|'')*'|`(?:[^`]|``)*`|"(?:[^"]|"")*")|\s+(?=(?:SELECT|FROM|WHERE|GROUP BY|PARTITION BY|HAVING|WINDOW|(?:LEFT |RIGHT |FULL |INNER )?(?:OUTER )?JOIN|EMIT|LIMIT)\b)|\s+/gi;
  const next = /^(?:SELECT|FROM|WHERE|GROUP BY|PARTITION BY|HAVING|WINDOW|LEFT|RIGHT|FULL|INNER|JOIN|EMIT|LIMIT)\b/i;
  const one = statement.trim().replace(clause, (blank, string, at, whole) => {
    if (string) return string;
    return next.test(whole.slice(at + blank.length)) ? "\n" : " ";
  });
  return one.replace(/\n((?:LEFT|RIGHT|FULL|INNER)(?: OUTER)?)\n(JOIN)/gi, "\n$1 $2").split("\n").flatMap(items);
}

function items(line) {
  if (!/^SELECT\b/i.test(line)) return [line];
  const parts = [];
  let depth = 0;
  let from = 0;
  for (const match of line.matchAll(/'(?:[^']|'')*'|`(?:[^`]|``)*`|"(?:[^"]|"")*"|[(),]|<|>/g)) {
    if (match[0] === "(") depth += 1;
    else if (match[0] === ")") depth -= 1;
    else if (match[0] === "," && depth === 0) {
      parts.push(line.slice(from, match.index + 1));
      from = match.index + 1;
    }
  }
  parts.push(line.slice(from));
  return parts.map((part, at) => (at ? `  ${part.trim()}` : part));
}

function lengths(left, right) {
  const table = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      table[i][j] = left[i] === right[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}

/** Return rows `{left, right, same}`; a side without a line is null. */
export function sideBySide(left, right) {
  const table = lengths(left, right);
  const rows = [];
  let gone = [];
  let come = [];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) {
      rows.push({ left: gone[at] ?? null, right: come[at] ?? null, same: false });
    }
    gone = [];
    come = [];
  };
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      flush();
      rows.push({ left: left[i++], right: right[j++], same: true });
    } else if (j >= right.length || (i < left.length && table[i + 1][j] >= table[i][j + 1])) {
      gone.push(left[i++]);
    } else {
      come.push(right[j++]);
    }
  }
  flush();
  return rows;
}
