// Serves console/dist and forwards gRPC-web to a gRPC server. For development and tests only: `entail serve
// --console-listen` does the same in one process.
// Usage: node dev-proxy.mjs LISTEN UPSTREAM [DIST] [--token TOKEN] [--deny]
// LISTEN is `host:port`; UPSTREAM is `host:port` or `unix:PATH`. With --token, calls without this bearer token fail as
// UNAUTHENTICATED; with --deny, calls with another one fail as PERMISSION_DENIED.
import { createServer } from "node:http";
import { createConnection } from "node:net";
import { connect as connectHttp2 } from "node:http2";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHash } from "node:crypto";

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/assets/app.js": ["assets/app.js", "text/javascript; charset=utf-8"],
  "/assets/app.css": ["assets/app.css", "text/css; charset=utf-8"],
  "/assets/licenses.txt": ["assets/licenses.txt", "text/plain; charset=utf-8"],
};

export function startProxy({ listen, upstream, dist, token = "", deny = false }) {
  let session;
  const open = () => {
    if (session && !session.closed && !session.destroyed) return session;
    const target = upstream.startsWith("unix:") ? { path: upstream.slice(5) } : { host: upstream.replace(/:\d+$/, ""), port: Number(/:(\d+)$/.exec(upstream)[1]) };
    session = connectHttp2("http://localhost", { createConnection: () => createConnection(target) });
    session.on("error", () => {});
    return session;
  };
  const server = createServer((request, response) => {
    response.setHeader("content-security-policy", CSP);
    response.setHeader("x-content-type-options", "nosniff");
    response.setHeader("referrer-policy", "no-referrer");
    const path = request.url.split("?")[0];
    if (request.method === "POST") return forward(request, response, path);
    const file = FILES[path];
    if (!file) return response.writeHead(404).end();
    const compressed = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
    const content = readFileSync(join(dist, file[0] + (compressed ? ".gz" : "")));
    const etag = `"${createHash("sha256").update(content).digest("hex").slice(0, 32)}"`;
    if (request.headers["if-none-match"] === etag) return response.writeHead(304, { etag }).end();
    response.writeHead(200, { "content-type": file[1], etag, "cache-control": "no-cache", ...(compressed ? { "content-encoding": "gzip" } : {}) });
    response.end(content);
  });

  const end = (response, trailers) => {
    const text = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const frame = Buffer.alloc(5 + Buffer.byteLength(text));
    frame[0] = 0x80;
    frame.writeUInt32BE(Buffer.byteLength(text), 1);
    frame.write(text, 5);
    response.end(frame);
  };

  // gRPC-web frames are those of gRPC; trailers follow as a frame of the body.
  const forward = (request, response, path) => {
    response.setHeader("content-type", "application/grpc-web+proto");
    const sent = request.headers.authorization;
    if (token && sent !== `Bearer ${token}`) {
      const denied = deny && sent;
      request.resume();
      response.writeHead(200);
      return end(response, { "grpc-status": denied ? 7 : 16, "grpc-message": denied ? "the account may not get policies" : "a bearer token is required" });
    }
    const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
    for (const name of ["authorization", "grpc-timeout"]) if (request.headers[name]) headers[name] = request.headers[name];
    const stream = open().request(headers);
    let trailers = {};
    let begun = false;
    const begin = () => {
      if (!begun) response.writeHead(200);
      begun = true;
    };
    const grpc = (fields) => Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith("grpc-")));
    stream.on("response", (fields) => {
      trailers = { ...trailers, ...grpc(fields) };
      begin();
    });
    stream.on("trailers", (fields) => (trailers = { ...trailers, ...grpc(fields) }));
    stream.on("data", (chunk) => response.write(chunk));
    stream.on("end", () => {
      begin();
      end(response, "grpc-status" in trailers ? trailers : { "grpc-status": 14, "grpc-message": "no status" });
    });
    stream.on("error", () => {
      session = undefined;
      if (response.writableEnded) return;
      begin();
      end(response, { "grpc-status": 14, "grpc-message": "the server does not answer" });
    });
    response.on("close", () => stream.close());
    request.pipe(stream);
  };

  const [host, port] = [listen.replace(/:\d+$/, ""), Number(/:(\d+)$/.exec(listen)[1])];
  return new Promise((done) => server.listen(port, host, () => done({ server, origin: `http://${host}:${server.address().port}`, close: () => (server.closeAllConnections(), session?.destroy(), server.close()) })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2);
  const take = (name) => {
    const at = args.indexOf(name);
    return at < 0 ? "" : args.splice(at, 2)[1];
  };
  const token = take("--token");
  const deny = args.includes("--deny");
  const [listen, upstream, dist = join(dirname(fileURLToPath(import.meta.url)), "dist")] = args.filter((one) => one !== "--deny");
  const { origin } = await startProxy({ listen, upstream, dist, token, deny });
  console.log(`console on ${origin}`);
}
