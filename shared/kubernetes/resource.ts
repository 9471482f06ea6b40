import type { FieldTable } from "./protobuf.ts";

/** A kind of objects, and the encoding in which the server is asked for them. */
export interface ResourceKind {
  /** Absent: the core group. */
  readonly group?: string;
  readonly version: string;
  /** As in the URL: `networkpolicies`. */
  readonly plural: string;
  /** The fields to decode of the protobuf encoding. Absent: JSON, the only encoding of custom resources. */
  readonly fields?: FieldTable;
  /** Asks for `metadata` only, of any kind (PartialObjectMetadata). */
  readonly metadataOnly?: boolean;
}

/** A kind of objects, and what is kept of each. */
export interface Resource<T> extends ResourceKind {
  /**
   * Makes the value that is kept of an object; `undefined` to skip the object. Must not throw, and must build a new
   * value: a reference into the object would keep all of it in memory.
   */
  readonly project: (object: ApiObject) => T | undefined;
  /** Whether two values are equal, so that no change is reported. Absent: each new version is a change. */
  readonly same?: (a: T, b: T) => boolean;
}

/** Which objects of a resource. */
export interface Selection {
  /** Absent: all. */
  readonly namespace?: string;
  /** `app=web,tier!=db`. */
  readonly labels?: string;
  /** `spec.nodeName=here`. */
  readonly fields?: string;
}

/** As it came from the server: nothing is checked. */
export type ApiObject = Readonly<Record<string, unknown>>;

/** `/api/v1/namespaces/x/pods`. */
export function pathOf(resource: ResourceKind, { namespace }: Selection = {}): string {
  const { group, version, plural } = resource;
  const root = group === undefined ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural}`;
}

/** `pods in namespace "x"`. */
export function textOf(resource: ResourceKind, { namespace }: Selection = {}): string {
  return namespace === undefined ? resource.plural : `${resource.plural} in namespace "${namespace}"`;
}

export function queryOf({ labels, fields }: Selection, more: Readonly<Record<string, string>>): URLSearchParams {
  return new URLSearchParams({
    ...more,
    ...(labels === undefined ? {} : { labelSelector: labels }),
    ...(fields === undefined ? {} : { fieldSelector: fields }),
  });
}

/** The `accept` header. The server may answer in another encoding; `content-type` tells which. */
export function acceptOf({ fields, metadataOnly = false }: ResourceKind, list: boolean): string {
  const kind = `PartialObjectMetadata${list ? "List" : ""}`;
  const as = metadataOnly ? `;as=${kind};g=meta.k8s.io;v=v1` : "";
  const json = `application/json${as}`;
  return fields === undefined ? json : `application/vnd.kubernetes.protobuf${as}, ${json}`;
}

export const mapIn = (of: unknown, key: string): ApiObject => {
  const value = isMap(of) ? of[key] : undefined;
  return isMap(value) ? value : {};
};

export const listIn = (of: ApiObject, key: string): readonly unknown[] => {
  const value = of[key];
  return Array.isArray(value) ? value : [];
};

/** A list of maps; entries of other types become empty maps, so that indexes stay. */
export const mapsIn = (of: ApiObject, key: string): readonly ApiObject[] =>
  listIn(of, key).map((entry) => (isMap(entry) ? entry : {}));

export const textIn = (of: ApiObject, key: string): string | undefined => {
  const value = of[key];
  return typeof value === "string" && value !== "" ? value : undefined;
};

const isMap = (value: unknown): value is ApiObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
