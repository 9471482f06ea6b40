/** Asking hosts for an echo by ICMP and ICMPv6. No policy: whom to ask, and what it means, is `reachability/`. */
export { Echo, type EchoOutcome, type EchoQuestion } from "./echo.ts";
