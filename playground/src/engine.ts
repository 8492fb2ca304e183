// The engine as the page sees it: a worker that answers one question at a time.

import { type Answer, engineName, parseAnswer, type Question } from "./answer";

/** A question that takes longer is ended. */
const LIMIT_MS = 10_000;

declare const ENGINE_URL: string;
declare const WORKER_URL: string;

export class Engine {
  private worker: Worker | null = null;
  private readonly module: Promise<WebAssembly.Module>;
  private last = 0;
  private busy: Promise<unknown> = Promise.resolve();

  constructor() {
    this.module = load();
  }

  /** Answers a question, after those that were asked before. Returns null if it is obsolete when its turn comes. */
  ask(question: Question): Promise<Answer>;
  ask(question: Question, isObsolete: () => boolean): Promise<Answer | null>;
  ask(question: Question, isObsolete = () => false): Promise<Answer | null> {
    const answer = this.busy.then(() => (isObsolete() ? null : this.run(question)));
    this.busy = answer.catch(() => undefined);
    return answer;
  }

  private async run({ manifests, name }: Question): Promise<Answer> {
    const module = await this.module;
    if (!this.worker) {
      this.worker = new Worker(new URL(WORKER_URL, document.baseURI));
      this.worker.postMessage({ module });
    }
    const worker = this.worker;
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      const end = (message: string): void => {
        worker.terminate();
        this.worker = null;
        reject(new Error(message));
      };
      const timer = setTimeout(() => {
        end(
          `There is no answer after ${LIMIT_MS / 1000} s, and the engine was stopped. ` +
            "Use the command line for manifests of this size.",
        );
      }, LIMIT_MS);
      worker.onerror = (event) => {
        clearTimeout(timer);
        end(event.message || "The worker of the engine could not be started.");
      };
      worker.onmessage = (event: MessageEvent<{ id: number; answer?: string; error?: string }>) => {
        if (event.data.id !== id) return;
        clearTimeout(timer);
        if (event.data.answer === undefined) {
          end(`The engine failed: ${event.data.error ?? "no reason"}`);
          return;
        }
        try {
          resolve(parseAnswer(event.data.answer));
        } catch (error) {
          end(`The answer of the engine cannot be read: ${String(error)}`);
        }
      };
      worker.postMessage({ id, question: JSON.stringify({ manifests, name: engineName(name) }) });
    });
  }
}

async function load(): Promise<WebAssembly.Module> {
  const response = await fetch(new URL(ENGINE_URL, document.baseURI));
  if (!response.ok) throw new Error(`The engine cannot be loaded: ${response.status} ${response.statusText}`);
  // Not compiled while it streams: that needs a Content-Type that simple servers do not send.
  return WebAssembly.compile(await response.arrayBuffer());
}
