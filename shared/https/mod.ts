/** HTTPS for clients of Kubernetes, one request and its answer at a time. */
export { Exchange, type WatchOut } from "./exchange.ts";
export { HttpsServer, type ServerTls } from "./https-server.ts";
