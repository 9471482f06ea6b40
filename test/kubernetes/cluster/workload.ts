import { agnhostImage } from "./images.ts";

export const servedPort = 8080;

/** Until every kube-proxy has heard that a pod goes, also on a machine that has much else to do. */
const lingerSeconds = 6;

export interface Wish {
  readonly replicas: number;
  /** The node that all of them are on; absent: spread over all, evenly. */
  readonly node?: string;
  /** Of the node, where it leads to the pod. */
  readonly hostPort?: number;
  /** Whether they go on for a while when they are to end, until nobody is sent to them any more. */
  readonly lingers?: boolean;
}

/** Pods that serve HTTP. */
export const deployment = (name: string, { replicas, node, hostPort, lingers = false }: Wish): object => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, labels: { made: "by-tests" } },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    strategy: { rollingUpdate: { maxSurge: "50%", maxUnavailable: 0 } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: lingers ? 2 * lingerSeconds : 5,
        ...(node === undefined ? { topologySpreadConstraints: [evenly(name)] } : { nodeSelector: on(node) }),
        containers: [
          {
            name: "server",
            image: agnhostImage,
            imagePullPolicy: "Never",
            args: ["netexec", `--http-port=${servedPort}`],
            ports: [{ containerPort: servedPort, ...(hostPort === undefined ? {} : { hostPort }) }],
            readinessProbe: { httpGet: { path: "/hostname", port: servedPort }, periodSeconds: 1 },
            ...(lingers ? { lifecycle: { preStop: { sleep: { seconds: lingerSeconds } } } } : {}),
          },
        ],
      },
    },
  },
});

const on = (node: string) => ({ "kubernetes.io/hostname": node });

const evenly = (app: string) => ({
  maxSkew: 1,
  topologyKey: "kubernetes.io/hostname",
  whenUnsatisfiable: "ScheduleAnyway",
  labelSelector: { matchLabels: { app } },
});

/** In both families, at a port of every node as well. */
export const service = (name: string, nodePort: number): object => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, labels: { made: "by-tests" } },
  spec: {
    type: "NodePort",
    ipFamilyPolicy: "RequireDualStack",
    selector: { app: name },
    ports: [{ port: 80, targetPort: servedPort, nodePort }],
  },
});
