// A question as the fragment of an address. Fragments are not sent to servers.

import type { Question } from "./answer";

/** Maximum length of a fragment: longer addresses are cut by chats and mail programs. */
export const MAX_FRAGMENT = 32 * 1024;
/** Maximum size of the text that a fragment may decompress to. */
const MAX_TEXT = 4 * 1024 * 1024;
const PREFIX = "#v1.";

export class ShareError extends Error {}

/** Returns the fragment of a question. */
export async function encode(question: Question): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (let at = 0; at < packed.length; at += 0x8000) binary += String.fromCharCode(...packed.subarray(at, at + 0x8000));
  const fragment = PREFIX + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (fragment.length > MAX_FRAGMENT) {
    const size = Math.ceil(fragment.length / 1024);
    throw new ShareError(
      `The link would have ${size} KB; at most ${MAX_FRAGMENT / 1024} KB survive most programs. ` +
        "Remove objects that do not matter to the question, such as CRDs and other routes, and share again.",
    );
  }
  return fragment;
}

/** Returns the question of a fragment, or null if the fragment is not one. */
export async function decode(fragment: string): Promise<Question | null> {
  if (!fragment.startsWith(PREFIX)) return null;
  if (fragment.length > MAX_FRAGMENT) throw new ShareError("The link is too long.");
  try {
    const binary = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const reader = stream.getReader();
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > MAX_TEXT) {
        await reader.cancel();
        throw new ShareError("The link contains too much text.");
      }
      chunks.push(value as Uint8Array<ArrayBuffer>);
    }
    const question: unknown = JSON.parse(await new Blob(chunks).text());
    const { manifests, name } = question as Record<string, unknown>;
    if (typeof manifests !== "string" || typeof name !== "string") throw new Error();
    return { manifests, name };
  } catch (error) {
    if (error instanceof ShareError) throw error;
    throw new ShareError("The link is damaged: it was probably cut. Ask for it again.");
  }
}
