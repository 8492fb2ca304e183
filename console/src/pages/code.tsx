import type { ComponentChildren } from "preact";
import { CODES } from "../gen/codes";
import { Title } from "../parts";
import { href } from "../router";

/** The page of a finding or a reason, from docs/findings. */
export function CodePage({ code }: { code: string }) {
  const text = CODES[code];
  if (!text) return <Title text={`There is no code ${code}`} />;
  const [heading = code, ...rest] = text.split("\n");
  return (
    <>
      <Title text={heading.replace(/^# /, "")} />
      <p class="actions">
        <a href={href(["findings"], { code })}>Findings with this code</a>
      </p>
      <div class="document">{blocks(rest)}</div>
    </>
  );
}

/** The Markdown that docs/findings uses: headings, paragraphs, lists, fences, code and emphasis. */
function blocks(lines: string[]): ComponentChildren[] {
  const found: ComponentChildren[] = [];
  let paragraph: string[] = [];
  let items: string[] = [];
  const flush = () => {
    if (paragraph.length) found.push(<p>{inline(paragraph.join(" "))}</p>);
    if (items.length) found.push(<ul>{items.map((item) => <li>{inline(item)}</li>)}</ul>);
    paragraph = [];
    items = [];
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    if (line.startsWith("```")) {
      flush();
      const end = lines.indexOf("```", at + 1);
      found.push(<pre tabIndex={0}>{lines.slice(at + 1, end < 0 ? undefined : end).join("\n")}</pre>);
      at = end < 0 ? lines.length : end;
    } else if (line.startsWith("## ")) {
      flush();
      found.push(<h2>{line.slice(3)}</h2>);
    } else if (/^[-*] /.test(line)) {
      if (paragraph.length) flush();
      items.push(line.slice(2));
    } else if (!line.trim()) flush();
    else if (items.length) items[items.length - 1] += ` ${line.trim()}`;
    else paragraph.push(line);
  }
  flush();
  return found;
}

function inline(text: string): ComponentChildren[] {
  return text.split(/(`[^`]+`|\[[^\]]+\]\([^)]+\)|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
    if (part.startsWith("**")) return <strong>{part.slice(2, -2)}</strong>;
    const link = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part);
    if (!link) return part;
    const code = /^(E\d+)\.md/.exec(link[2]!);
    return code ? <a href={href(["code", code[1]!])}>{inline(link[1]!)}</a> : inline(link[1]!);
  });
}
