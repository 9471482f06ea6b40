import { int32, type MessageCodec, message, text } from "./wire.ts";

/** The messages of `health.proto`, as in `pipette-messages.ts`. */

export const ServingStatus = { unknown: 0, serving: 1, notServing: 2, serviceUnknown: 3 } as const;
export type ServingStatus = (typeof ServingStatus)[keyof typeof ServingStatus];

export interface HealthCheckRequest {
  readonly service: string;
}

export interface HealthCheckResponse {
  /** `ServingStatus`, or a number of a later day. */
  readonly status: number;
}

export const HealthCheckRequest: MessageCodec<HealthCheckRequest> = message<HealthCheckRequest>({ service: text(1) });

export const HealthCheckResponse: MessageCodec<HealthCheckResponse> = message<HealthCheckResponse>({
  status: int32(1),
});
