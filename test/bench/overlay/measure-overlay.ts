import { OpenVswitch } from "../../overlay/open-vswitch.ts";
import type { Row } from "../row.ts";
import type { Setting } from "../setting.ts";
import { measureBurst } from "./measure-burst.ts";
import { measureOverlayPods } from "./measure-pods.ts";
import { measureServices, type ServicesSize } from "./measure-services.ts";
import { measureSwitch } from "./measure-switch.ts";
import type { NodeSize } from "./node-flows.ts";

/** What every measure of the overlay needs to know about this run. */
export interface OverlaySetting
  extends Pick<Setting, "dist" | "peers" | "launcher" | "scratch" | "rounds" | "progress"> {
  /** In the bundle that is timed alone. */
  readonly flows: number;
  /** Whose flows are put in whole. */
  readonly node: NodeSize;
  readonly services: ServicesSize;
  /** Pods that come at once. */
  readonly burst: number;
}

/** Pods, flows and services on an Open vSwitch of this run's own, which forwards in user space. */
export async function measureOverlay(setting: OverlaySetting): Promise<Row[]> {
  await using vswitch = await OpenVswitch.start();
  return [
    ...(await measureOverlayPods(vswitch, setting)),
    await measureBurst(vswitch, setting),
    ...(await measureSwitch(vswitch, setting)),
    ...(await measureServices(vswitch, setting)),
  ];
}
