// The comments as GitHub shows them: the Markdown that `triton-gate comment` posts goes through a
// GitHub-flavoured renderer and GitHub's own list of allowed HTML, and what comes out is looked at:
// whole tables, no link, image or mention that somebody else chose, nothing that leaves its fold.
//
// Where a Chromium is there, each page is also laid out in it at the width of a comment, and a
// screenshot is kept under target/web/.
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join, resolve as resolvePath } from "node:path";
import { accessSync, constants } from "node:fs";
import rehypeRaw from "rehype-raw";
import rehypeSanitize from "rehype-sanitize";
import rehypeStringify from "rehype-stringify";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";
import { visit } from "unist-util-visit";

const root = new URL("../..", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "render-"));
const pictures = join(root, "target/web");
const LIMIT = 65536;
const WIDTH = 860;
const HOSTILE =
  "a|b `c` <img src=x onerror=alert(1)> @octocat #1 GH-2 [x](http://evil.example) https://evil.example " +
  "www.evil.example </details></td></table> <!-- --> $x$ ~~~ ``` **b** \u202e\n| x | y |\n|--|--|\n# h 漢字🚀";

const fixture = (name) =>
  JSON.parse(readFileSync(join(root, `tests/fixtures/github/${name}.json`), "utf8"));
const regression = fixture("regression");
const pass = fixture("pass");
const change = (kind, more) => ({
  kind, scenario: "model-1-c8", environment: null, key: "", base: null, head: null, milder: true, ...more,
});

const side = (queue_us) => ({
  latency_us: 3500 + queue_us, queue_us, compute_input_us: 10, compute_infer_us: 3000, compute_output_us: 5,
  overhead_us: 40, network_us: 445, executed_batch: 4,
});
regression.scenarios[0].breakdown = { baseline: side(20), candidate: side(430) };

// `count` scenarios, every seventh of which regressed.
const many = (count, name = (at) => `model-${at}-c8`) => {
  const scenarios = Array.from({ length: count }, (_, at) => ({
    ...(at % 7 === 0 ? regression : pass).scenarios[0],
    name: name(at),
  }));
  return { ...regression, scenarios };
};
// A text in every place that comes from outside.
const everywhere = (value, text) => {
  const free = new Set([
    "name", "model", "model_version", "load", "text", "next", "source", "commit", "newest", "field",
    "baseline", "candidate", "headline", "environment_name", "scenario", "base", "head", "note", "key",
  ]);
  return JSON.parse(JSON.stringify(value), (key, old) =>
    typeof old === "string" && (free.has(key) || /^\d+$/.test(key)) ? text : old,
  );
};
const gate = {
  judged_by: "base",
  changes: [
    change("scenario_removed"),
    change("setting", { key: "gate.p99_rise", base: "10%", head: "50%" }),
    change("setting", { key: "gate.mode", base: "enforce", head: "advise" }),
    change("paths", { key: "paths", base: "models/**", head: "models/a/**" }),
    change("baselines", { scenario: null, head: "files in baselines: 2 added", milder: false }),
  ],
};

// Name, results, and how many scenarios must be found in the tables (none where some are cut).
const cases = [
  ["pass", [pass], pass.scenarios.length],
  ["one", [many(1)], 1],
  ["twenty", [many(20)], 20],
  ["three-hundred", [many(300)], undefined],
  ["three-thousand", [many(3000)], undefined],
  ["gate-changed", [{ ...many(2), gate_changes: gate }], 2],
  ["environments", [many(3), { ...pass, environment_name: "a100" }], undefined],
  ["hostile", [everywhere({ ...many(8), gate_changes: gate }, HOSTILE)], undefined],
  ["long-names", [many(9, (at) => `${"x".repeat(90)}${at}`)], undefined],
];

let problems = 0;
const must = (condition, text) => {
  if (condition) return;
  console.error(`test-web: render: ${text}`);
  problems += 1;
};

// A GitHub that has no comment yet and keeps the one that it is given.
let posted;
const github = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    if (request.method === "POST") posted = JSON.parse(Buffer.concat(chunks).toString()).body;
    const [status, answer] =
      request.method === "POST" ? [201, { id: 1 }] : request.url === "/user" ? [403, {}] : [200, []];
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  });
});
await new Promise((resolve) => github.listen(0, "127.0.0.1", resolve));

const comment = (results) =>
  new Promise((resolve, reject) => {
    posted = undefined;
    const files = results.map((result, at) => {
      const file = join(folder, `${at}.json`);
      writeFileSync(file, JSON.stringify(result));
      return file;
    });
    const event = join(folder, "event.json");
    writeFileSync(event, JSON.stringify({ number: 12, pull_request: { number: 12, head: { sha: "abc" } } }));
    const child = spawn(
      resolvePath(root, process.env.TRITON_GATE ?? "target/debug/triton-gate"),
      ["--quiet", "comment", ...files],
      {
        env: {
          PATH: process.env.PATH,
          GITHUB_API_URL: `http://127.0.0.1:${github.address().port}`,
          GITHUB_SERVER_URL: "https://github.com",
          GITHUB_REPOSITORY: "team/serving",
          GITHUB_RUN_ID: "77",
          GITHUB_TOKEN: "token",
          GITHUB_EVENT_PATH: event,
        },
        stdio: ["ignore", "inherit", "inherit"],
      },
    );
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 && posted ? resolve(posted) : reject(new Error(`exit ${code}`))));
  });

const parsed = unified().use(remarkParse).use(remarkGfm);
const allowed = unified()
  .use(remarkRehype, { allowDangerousHtml: true })
  .use(rehypeRaw)
  .use(rehypeSanitize);
const html = unified().use(rehypeStringify);
const textOf = (node) => node.value ?? (node.children ?? []).map(textOf).join("");

const look = (name, markdown, tree, expected) => {
  must([...markdown].length < LIMIT, `${name}: ${[...markdown].length} characters`);
  const plain = new Set(
    "p strong ul li a table thead tbody tr th td details summary sub pre code span h3".split(" "),
  );
  const scenarios = new Set();
  let links = 0;
  visit(tree, "element", (node, _, parent) => {
    must(plain.has(node.tagName), `${name}: an element ${node.tagName}`);
    if (node.tagName === "a") {
      links += 1;
      const href = node.properties.href;
      must(href === "https://github.com/team/serving/actions/runs/77", `${name}: a link to ${href}`);
    }
    if (["details", "table"].includes(node.tagName)) {
      const place = node.tagName === "details" ? parent.type === "root" : true;
      must(place, `${name}: a fold within ${parent.tagName}`);
    }
    if (node.tagName === "tr") {
      const cells = node.children.filter(({ type }) => type === "element");
      must(cells.length === 8, `${name}: a row of ${cells.length} cells: ${textOf(node)}`);
      if (cells[0]?.tagName === "td") scenarios.add(textOf(cells[0]));
    }
  });
  must(links === 1, `${name}: ${links} links`);
  if (expected !== undefined) {
    must(scenarios.size === expected, `${name}: ${scenarios.size} scenarios in the tables`);
  }
  visit(tree, "text", (node, _, parent) => {
    if (parent.tagName === "code") return;
    must(!/(^|[^\w])@[A-Za-z0-9]/.test(node.value), `${name}: mentions someone: ${node.value}`);
    must(!/(^|[^\w&])#\d/.test(node.value), `${name}: names an issue: ${node.value}`);
    must(!/\bGH-\d/i.test(node.value), `${name}: names an issue: ${node.value}`);
    must(!/^\|?[ :-]*--[ :|-]*$/m.test(node.value), `${name}: a table that is not one: ${node.value}`);
  });
  const [first] = tree.children.filter(({ type }) => type === "element");
  must(first?.tagName === "p", `${name}: the first line is a ${first?.tagName}`);
  must(first?.children.some(({ tagName }) => tagName === "strong"), `${name}: no verdict in the first line`);
};

// ------------------------------------------------------------------ in a browser, where there is one

const browser = ["chromium", "chromium-browser", "google-chrome"]
  .flatMap((name) => process.env.PATH.split(delimiter).map((path) => join(path, name)))
  .find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
const STYLE = `body { margin: 16px; width: ${WIDTH}px; font: 14px/1.5 "DejaVu Sans", sans-serif; color: #1f2328 }
  table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; font-variant: tabular-nums }
  th, td { padding: 6px 13px; border: 1px solid #d1d9e0 } pre { overflow: auto; background: #f6f8fa; padding: 16px }
  sub { font-size: 75% } p, ul, table, pre, details { margin: 0 0 16px; overflow-wrap: break-word }`;
// Widest page, and the most lines of a cell that holds numbers.
const MEASURE = `const cells = [...document.querySelectorAll("td:not(:first-child)")];
  const lines = Math.max(0, ...cells.map((cell) => Math.round((cell.clientHeight - 12) / 21)));
  document.body.dataset.width = document.documentElement.scrollWidth;
  document.body.dataset.lines = lines;`;

const chrome = (options) =>
  new Promise((resolve, reject) => {
    const home = mkdtempSync(join(folder, "home-"));
    execFile(
      browser,
      ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", `--user-data-dir=${home}`, ...options],
      { timeout: 120_000, maxBuffer: 1 << 28 },
      (error, out) => (error ? reject(error) : resolve(out)),
    );
  });

const layOut = async (name, body) => {
  const open = body.replaceAll("<details>", "<details open>");
  const page = (content, script = "") =>
    `<!doctype html><meta charset="utf-8"><style>${STYLE}</style><body>${content}<script>${script}</script>`;
  const measured = join(folder, `${name}.html`);
  writeFileSync(measured, page(open, MEASURE));
  const dom = await chrome(["--dump-dom", `file://${measured}`]);
  const width = Number(/data-width="(\d+)"/.exec(dom)?.[1]);
  const lines = Number(/data-lines="(\d+)"/.exec(dom)?.[1]);
  must(width > 0 && width <= WIDTH + 40, `${name}: the page is ${width} px wide`);
  if (!name.startsWith("long") && name !== "hostile") {
    must(lines <= 3, `${name}: a cell of ${lines} lines`);
  }
  mkdirSync(pictures, { recursive: true });
  const shown = join(folder, "shown.html");
  writeFileSync(shown, page(body));
  const size = `--window-size=${WIDTH + 40},1400`;
  await chrome([size, `--screenshot=${join(pictures, `${name}.png`)}`, `file://${shown}`]);
};

try {
  for (const [name, results, expected] of cases) {
    const markdown = await comment(results);
    const tree = await allowed.run(parsed.parse(markdown));
    look(name, markdown, tree, expected);
    if (browser) await layOut(name, html.stringify(tree));
  }
} catch (error) {
  must(false, error.stack);
} finally {
  github.close();
  rmSync(folder, { recursive: true, force: true });
}
if (problems === 0) {
  const where = browser ? "in a browser too, pictures under target/web" : "without a browser, none is there";
  console.log(`test-web: ${cases.length} comments render as they should (${where})`);
}
process.exit(problems === 0 ? 0 : 1);
