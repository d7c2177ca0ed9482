// Prints the licence of each package that the bundles contain.
import { readFileSync, readdirSync } from "node:fs";

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
for (const [path, entry] of Object.entries(lock.packages)) {
  if (!path || entry.dev || entry.optional) continue;
  const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
  if (!file) throw new Error(`${path} has no licence text`);
  const name = path.replace(/^.*node_modules\//, "");
  console.log(`${name} ${entry.version} (${entry.license})\n\n${readFileSync(`${path}/${file}`, "utf8").trim()}\n\n${"-".repeat(80)}\n`);
}
