// Every request that `triton-gate comment` sends is valid by GitHub's own description of its API.
//
// Prism serves the few paths of the description that are used and answers with 4xx whatever does
// not fit; each answer is kept, and none may be a refusal.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve as resolvePath } from "node:path";

const root = new URL("../..", import.meta.url).pathname;
const modules = join(root, "tests/web/node_modules");
const folder = mkdtempSync(join(tmpdir(), "contract-"));
const children = [];

const whole = JSON.parse(
  readFileSync(join(modules, "@octokit/openapi/generated/api.github.com.deref.json"), "utf8"),
);
const used = {
  "/user": ["get"],
  "/repos/{owner}/{repo}/pulls": ["get"],
  "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["get", "post"],
  "/repos/{owner}/{repo}/issues/comments/{comment_id}": ["patch"],
};
const paths = {};
for (const [path, verbs] of Object.entries(used)) {
  paths[path] = Object.fromEntries(verbs.map((verb) => [verb, whole.paths[path][verb]]));
  // Requests are checked, not the description's own examples of answers, of which one is wrong.
  for (const { responses } of Object.values(paths[path])) {
    for (const { content } of Object.values(responses)) {
      for (const type of Object.values(content ?? {})) delete type.schema;
    }
  }
}
const description = join(folder, "github.json");
writeFileSync(
  description,
  JSON.stringify({ openapi: whole.openapi, info: whole.info, servers: [{ url: "/" }], paths }),
);

const port = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

const prismPort = await port();
const prism = spawn(
  join(modules, ".bin/prism"),
  ["mock", "--errors", "--host", "127.0.0.1", "--port", String(prismPort), description],
  { stdio: ["ignore", "pipe", "pipe"] },
);
children.push(prism);
let log = "";
prism.stdout.on("data", (data) => (log += data));
prism.stderr.on("data", (data) => (log += data));

// Before Prism: notes each request with its answer, and gives the lists that the test wants.
const seen = [];
let comments = [];
let pulls = [];
const forward = createServer((incoming, outgoing) => {
  const chunks = [];
  incoming.on("data", (chunk) => chunks.push(chunk));
  incoming.on("end", () => {
    const target = {
      host: "127.0.0.1",
      port: prismPort,
      method: incoming.method,
      path: incoming.url,
      headers: { ...incoming.headers, host: `127.0.0.1:${prismPort}` },
    };
    const onward = request(target, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => {
        let text = Buffer.concat(parts).toString();
        seen.push({ verb: incoming.method, path: incoming.url, status: answer.statusCode, text });
        if (incoming.method === "GET" && answer.statusCode === 200) {
          if (incoming.url.includes("/comments?")) text = JSON.stringify(comments);
          if (incoming.url.includes("/pulls?")) text = JSON.stringify(pulls);
        }
        outgoing.writeHead(answer.statusCode, { "content-type": "application/json" });
        outgoing.end(text);
      });
    });
    onward.on("error", () => outgoing.writeHead(502).end("{}"));
    onward.end(Buffer.concat(chunks));
  });
});
await new Promise((resolve) => forward.listen(0, "127.0.0.1", resolve));

const run = (event) =>
  new Promise((resolve) => {
    const file = join(folder, "event.json");
    writeFileSync(file, JSON.stringify(event));
    const child = spawn(
      resolvePath(root, process.env.TRITON_GATE ?? "target/debug/triton-gate"),
      ["comment", join(root, "tests/fixtures/github/regression.json")],
      {
        env: {
          PATH: process.env.PATH,
          GITHUB_API_URL: `http://127.0.0.1:${forward.address().port}`,
          GITHUB_REPOSITORY: "team/serving",
          GITHUB_TOKEN: "token",
          GITHUB_EVENT_PATH: file,
        },
        stdio: ["ignore", "inherit", "inherit"],
      },
    );
    children.push(child);
    child.on("exit", resolve);
  });

let problems = 0;
const must = (condition, text) => {
  if (condition) return;
  console.error(`test-web: contract: ${text}`);
  problems += 1;
};
try {
  for (let tries = 0; !log.includes("Prism is listening"); tries += 1) {
    if (tries > 600 || prism.exitCode !== null) throw new Error(`Prism did not start:\n${log}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // What is not valid is refused, or the rest would prove nothing.
  const invalid = await fetch(`http://127.0.0.1:${prismPort}/repos/a/b/issues/1/comments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "no body" }),
  });
  must(invalid.status >= 400, `an invalid request was answered with ${invalid.status}`);
  const pull = { number: 12, pull_request: { number: 12, head: { sha: "abc" } } };
  must((await run(pull)) === 0, "a first comment failed");
  const made = seen.find(({ verb }) => verb === "POST");
  const user = JSON.parse(seen.find(({ path }) => path === "/user").text);
  const marker = "<!-- triton-gate:thresholds/vision.toml -->";
  comments = [{ id: 4, body: `${marker}\nold`, user: { login: user.login, type: "User" } }];
  must((await run(pull)) === 0, "an update failed");
  pulls = [{ number: 12, head: { sha: "abc" } }];
  const fork = { owner: { login: "guest" }, full_name: "guest/serving" };
  must(
    (await run({
      workflow_run: { head_sha: "abc", head_branch: "fix/a b", pull_requests: [], head_repository: fork },
    })) === 0,
    "a comment for a fork failed",
  );
  must(made !== undefined, "no comment was made");
  for (const [path, verbs] of Object.entries(used)) {
    const pattern = new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}(\\?|$)`);
    for (const verb of verbs) {
      const sent = seen.some((one) => one.verb === verb.toUpperCase() && pattern.test(one.path));
      must(sent, `${verb} ${path} was never sent`);
    }
  }
  for (const { verb, path, status, text } of seen) {
    must(status < 300, `${verb} ${path}: ${status} ${text.slice(0, 300)}`);
  }
} catch (error) {
  must(false, error.message);
} finally {
  for (const child of children) child.kill();
  forward.close();
  rmSync(folder, { recursive: true });
}
if (problems === 0) console.log(`test-web: ${seen.length} requests fit GitHub's description`);
process.exit(problems === 0 ? 0 : 1);
