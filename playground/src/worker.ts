// Runs the engine. Each question gets an instance of its own, so that a failure leaves nothing behind.

import { ConsoleStdout, File, OpenFile, WASI } from "@bjorn3/browser_wasi_shim";

type Request = { module: WebAssembly.Module } | { id: number; question: string };
const scope = self as unknown as { onmessage: unknown; postMessage(message: unknown): void };
let compiled: WebAssembly.Module | undefined;

scope.onmessage = async (event: MessageEvent<Request>) => {
  const request = event.data;
  if ("module" in request) {
    compiled = request.module;
    return;
  }
  try {
    scope.postMessage({ id: request.id, answer: await run(request.question) });
  } catch (error) {
    scope.postMessage({ id: request.id, error: String(error) });
  }
};

async function run(question: string): Promise<string> {
  if (!compiled) throw new Error("the engine is not loaded");
  const output: Uint8Array<ArrayBuffer>[] = [];
  const errors: Uint8Array<ArrayBuffer>[] = [];
  const keep = (chunks: Uint8Array<ArrayBuffer>[]) => new ConsoleStdout((bytes) => chunks.push(new Uint8Array(bytes)));
  const input = new OpenFile(new File(new TextEncoder().encode(question)));
  const wasi = new WASI([], [], [input, keep(output), keep(errors)], { debug: false });
  const instance = await WebAssembly.instantiate(compiled, { wasi_snapshot_preview1: wasi.wasiImport });
  let code: number | string;
  try {
    code = wasi.start(instance as Parameters<WASI["start"]>[0]);
  } catch (error) {
    code = String(error);
  }
  if (code !== 0) {
    const text = (await new Blob(errors).text()).trim();
    throw new Error(text || `the engine ended with ${code}`);
  }
  return new Blob(output).text();
}
