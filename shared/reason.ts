/**
 * The message of something that was caught. Libraries also reject with objects that are no `Error`, of which `String`
 * makes "[object Object]".
 */
export function reasonOf(caught: unknown): string {
  if (typeof caught !== "object" || caught === null) return String(caught);
  const said = [field(caught, "message"), field(caught, "details"), field(caught, "reason"), field(caught, "code")];
  const found = said.find((text) => text !== "");
  if (found !== undefined) return found;
  if (caught instanceof Error) return caught.name;
  try {
    return JSON.stringify(caught);
  } catch {
    return "an object that says nothing of itself";
  }
}

function field(of: object, key: string): string {
  const value: unknown = Reflect.get(of, key);
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** The same with its stack, if it has one, for logs and crashes. */
export const traceOf = (caught: unknown): string => (caught instanceof Error && caught.stack) || reasonOf(caught);
