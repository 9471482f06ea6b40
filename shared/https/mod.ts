/** HTTPS for clients of Kubernetes, one request and its answer at a time. */
export { Exchange, type WatchOut } from "./exchange.ts";
export { allow, answerScrape, type Guard, identify, metricsPath, refuse } from "./guard.ts";
export { HttpsServer, type ServerTls } from "./https-server.ts";
