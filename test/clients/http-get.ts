import type { PrivateNode } from "../support/private-node.ts";

// By bash alone: the machine may have neither curl nor wget.
const script = 'exec 3<>"/dev/tcp/$0/$1"; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3';

/**
 * The body of a page, asked for in the node or in a network namespace of it.
 * @throws where there is no answer within five seconds
 */
export async function httpGet(
  node: PrivateNode,
  from: string | undefined,
  host: string,
  port: number,
): Promise<string> {
  const place = from === undefined ? [] : ["nsenter", `--net=${from}`];
  const answer = await node.runWords([...place, "timeout", "5", "bash", "-c", script, host, String(port)]);
  return answer.slice(answer.indexOf("\r\n\r\n") + 4).trim();
}
