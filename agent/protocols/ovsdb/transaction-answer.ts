import { isObject, show } from "../../../shared/schema/json-fields.ts";
import { codeOf, OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
import { decodeRow } from "./row-codec.ts";
import { type ExpectedResult, type Transaction, TransactionOutcome } from "./transaction.ts";
import { decodeAtom, MalformedValue } from "./values.ts";

/**
 * Reads the `result` of `transact` (RFC 7047, section 4.1.3). The errors stand inside: at the place of the operation
 * that failed, `null` behind it; one place further than there are operations where the commit failed.
 * @throws {OvsdbError} for a transaction that was not carried out, or an answer that says neither
 */
export function readAnswer(transaction: Transaction, result: unknown): TransactionOutcome {
  const { steps, action } = transaction;
  const malformed = (is: string): OvsdbError =>
    new OvsdbError(OvsdbCode.malformed, `Cannot ${action}: the answer of the server ${is}, wanted one of RFC 7047`);
  if (!Array.isArray(result)) throw malformed(`is ${show(result)}`);
  const failed = result.findIndex((each) => isObject(each) && Object.hasOwn(each, "error"));
  if (failed >= 0) throw refusal(transaction, failed, result[failed]);
  if (result.length !== steps.length) throw malformed(`has ${result.length} results for ${steps.length} operations`);
  const read = steps.map(({ result: expected, words }, at) => {
    try {
      return readResult(expected, result[at]);
    } catch (caught) {
      if (!(caught instanceof MalformedValue)) throw caught;
      throw malformed(`to operation ${at} (${words}) cannot be read (${caught.message})`);
    }
  });
  return new TransactionOutcome(read);
}

function readResult(expected: ExpectedResult, json: unknown): unknown {
  if (!isObject(json)) throw new MalformedValue(`it is ${show(json)}`);
  switch (expected.t) {
    case "nothing":
      return undefined;
    case "insert":
      return decodeAtom("uuid", json["uuid"]);
    case "count":
      return decodeAtom("integer", json["count"]);
    case "select": {
      const { table, columns } = expected;
      if (!Array.isArray(json["rows"])) throw new MalformedValue(`its rows are ${show(json["rows"])}`);
      return json["rows"].map((row) => decodeRow(table, columns, row));
    }
  }
}

function refusal({ action, steps }: Transaction, at: number, json: Readonly<Record<string, unknown>>): OvsdbError {
  const words = steps[at]?.words;
  const where = words === undefined ? "the commit" : `operation ${at} (${words})`;
  const { code, text } = serverError(json);
  return new OvsdbError(code, `Cannot ${action}: ${where} is answered ${text}, wanted success`, { operation: at });
}

/** An `<error>` (RFC 7047, section 3.1) of the server, in a result or in place of one. */
export function serverError(json: unknown): { readonly code: OvsdbCode; readonly text: string } {
  const word = isObject(json) ? json["error"] : json;
  const details = isObject(json) ? json["details"] : undefined;
  if (typeof word !== "string") return { code: OvsdbCode.refused, text: show(json) };
  const more = typeof details === "string" && details !== "" ? ` (${details.slice(0, longestDetails)})` : "";
  return { code: codeOf(word), text: `"${word.slice(0, longestDetails)}"${more}` };
}

/** Sentences of the server; it repeats what it does not like, which may be long. */
const longestDetails = 500;
