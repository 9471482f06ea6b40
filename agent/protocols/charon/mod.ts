/** What strongSwan's IKE daemon tells of its errors: the plugin error-notify. No policy. */
export { type CharonError, CharonErrors } from "./charon-errors.ts";
export { ErrorType } from "./error-message.ts";
