/** Who asks, what the API server lets them do, and of which nodes they may know. */
export { type Asker, type ClientTrust, clientTrusts, noTrust, trustConfigMap } from "./client-trust.ts";
export { ClusterAccess } from "./cluster-access.ts";
export { operatorToken } from "./operator-token.ts";
export { Refusal, statusOf } from "./refusal.ts";
export { type Reach, type User, type Wish, wishText } from "./user.ts";
