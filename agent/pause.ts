export { pause } from "../shared/pause.ts";
