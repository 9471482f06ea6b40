import type { CniRequest, VerbHandler, VerbTable } from "../shared/cni/dispatch.ts";
import { CniError } from "../shared/errors.ts";
import { redactArgs, redactConf } from "../shared/log.ts";
import { add } from "./add.ts";
import type { Call } from "./call.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { gc } from "./gc.ts";
import { type NetConf, parseNetConf, parseNetConfLeniently } from "./net-conf.ts";
import type { PluginContext } from "./plugin-context.ts";
import { openPluginLog } from "./plugin-log.ts";
import { status } from "./status.ts";

type Run = (call: Call) => Promise<string | undefined>;

/** Every verb as the dispatcher calls it: with its log, and its part of the configuration read. */
export function verbsIn(context: PluginContext): VerbTable {
  return {
    ADD: handler(context, add, "strictly"),
    CHECK: handler(context, check, "strictly"),
    STATUS: handler(context, status, "strictly"),
    // DEL and GC must be able to finish with any configuration.
    DEL: handler(context, del, "leniently"),
    GC: handler(context, gc, "leniently"),
  };
}

function handler(context: PluginContext, run: Run, manner: "strictly" | "leniently"): VerbHandler {
  return async (request) => {
    context.admit?.(request);
    const opening = openPluginLog(request);
    const opened = opening instanceof Promise ? await opening : opening;
    const log = opened.log.with(() => fieldsOf(request));
    // The age comes last: where the process has to wait in between, the call began earlier than it did, not later.
    const [now, nowAtMs] = [performance.now(), Date.now()];
    const agedMs = context.agedMs?.() ?? 0;
    const started = now - agedMs;
    const startedAtMs = nowAtMs - Math.ceil(agedMs);
    const sinceMs = (): number => Math.round((performance.now() - started) * 1000) / 1000;
    if (opened.debugging)
      log.debug("Called", { args: redactArgs(request.env.args), conf: redactConf(request.conf.raw) });
    try {
      const conf: NetConf =
        manner === "strictly"
          ? request.conf.derive(parseNetConf)
          : parseNetConfLeniently(request.conf, (problem) => log.warn(problem));
      const text = await run({ request, conf, log, context, agedMs, startedAtMs, startedMs: started });
      log.info("Done", { ms: sinceMs() });
      return text;
    } catch (caught) {
      const error = CniError.from(caught);
      log.error(error.message, { code: error.code, details: error.details, ms: sinceMs() });
      throw error;
    }
  };
}

function fieldsOf({ env, network }: CniRequest): Record<string, unknown> {
  const { command, containerId, ifname, netns } = env;
  const sandbox = containerId === "" ? {} : { containerId, ifname, netns };
  return { verb: command, network, ...sandbox, pid: process.pid };
}
