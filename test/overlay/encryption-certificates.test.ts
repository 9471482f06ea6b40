import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { authority, newNodeKey, nodePair, type PairWishes } from "../fakes/node-pairs.ts";
import { dayMs, SteppedClock } from "../faults/node/stepped-clock.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";
import { answers } from "./lab/reach.ts";

/** Of each node: its /run is its own. */
const given = "/run/given";
const certificates = {
  ...{ from: "files", certificate: `${given}/own.pem`, privateKey: `${given}/own.key`, authorities: `${given}/ca.pem` },
};

describeWith(
  "certificates of IPsec between two nodes",
  ["root", "openvswitch", "nft", "etcd", "openssl", "strongswan", "kernel-libipsec", "ovs-monitor-ipsec", "tun", "gcc"],
  () => {
    const [old, next] = [authority("old"), authority("next")];
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;
    /** Of the first node. */
    let clock: SteppedClock;

    beforeAll(async () => {
      compileExecutables();
      const ovs = { encryption: "ipsec", ipsec: { esp: "userspace", certificates } };
      lab = await Lab.ground({ nodes: ["a", "a"], esp: "userspace", ovs });
      clock = await SteppedClock.make(lab.directory);
      lab.node(1).variables = clock.env;
      await lab.startRegistry();
      for (const node of lab.nodes) await node.startAgent();
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = await Capture.start(lab.underlay, [1, 2]);
    });
    afterAll(async () => {
      capture?.[Symbol.dispose]();
      await lab?.[Symbol.asyncDispose]();
    });

    /** Gives a node what an operator would give it. @returns the certificate */
    async function give(
      number: number,
      wishes: PairWishes = {},
      trusted: readonly string[] = [],
    ): Promise<X509Certificate> {
      const node = lab.node(number);
      // strongSwan keeps certificates that it has seen, and takes a key by any of them that holds.
      const privateKey = newNodeKey();
      const pair = nodePair({ node: node.name, ca: old, privateKey, ...wishes });
      const script = `umask 077; mkdir -p ${given}; printf %s "$1" > ${certificates.certificate}; printf %s "$2" > ${certificates.privateKey}; printf %s "$3" > ${certificates.authorities}`;
      await node.ipsec.run("sh", "-c", script, "sh", pair.certificate, pair.privateKey, trusted.join("") || pair.ca);
      return new X509Certificate(pair.certificate);
    }

    const reached = async (): Promise<void> => {
      await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other", 30_000);
      await eventually(() => answers(far.namespace, near.address(4), { seconds: 1 }), "an answer of this one", 30_000);
    };
    const expectNothingClear = (): void => {
      expect(capture.having(marker)).toBe(0);
      expect([...capture.kinds().keys()].filter((kind) => !["esp", "ike", "other"].includes(kind))).toEqual([]);
    };
    const expectNothingBetween = async (): Promise<void> => {
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(false);
      expect(await says(far, near.address(4))).toBe(false);
      expectNothingClear();
    };
    const told = async (node: LabNode, sentence: RegExp): Promise<void> => {
      let last = "";
      const says = async (): Promise<boolean> => {
        last = (await node.home.status()).shortcomings.join("\n");
        return sentence.test(last);
      };
      await eventually(says, `${sentence} in the status of ${node.name}`, 30_000).catch((caught: Error) => {
        throw new Error(`${caught.message}; it says:\n${last}`);
      });
    };
    /** strongSwan agrees on keys anew with what it knows now. */
    const agreeAnew = async (): Promise<void> => {
      for (const node of lab.nodes) await node.ipsec.run("ipsec", "stroke", "down-srcip", "0.0.0.0", "255.255.255.255");
      for (const node of lab.nodes) {
        const status = await node.ipsec.run("ipsec", "status");
        for (const [, name] of status.matchAll(/^\s*([\w.-]+)[[{]\d+[\]}]:/gm))
          await node.ipsec.run("ipsec", "stroke", "down-nb", name ?? "");
      }
    };

    test("without certificates nothing goes, and the status says why", async () => {
      for (const node of lab.nodes)
        await told(node, /nothing goes to other nodes' pods: the node has no certificate for IPsec: .*no such file/i);
      await expectNothingBetween();
    });

    test("with them pods reach each other, and nothing of it can be read between the nodes", async () => {
      for (const number of [1, 2]) await give(number);
      await reached();
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(true);
      expectNothingClear();
      expect(capture.kinds().get("esp")).toBeGreaterThanOrEqual(12);
      for (const node of lab.nodes) {
        expect(await node.ipsec.run("ipsec", "statusall")).toMatch(/uses public key authentication/);
        expect(node.ipsec.log).toMatch(/authentication of 'n[12]' with RSA.* successful/);
        await eventually(async () => {
          const is = (await node.home.status()).shortcomings.join("\n");
          return !/nothing goes|certificate/.test(is);
        }, "nothing to complain of");
      }
    });

    test("another certificate is shown without a restart", async () => {
      const { pid } = lab.node(1).agent;
      const renewed = await give(1, { until: 48 });
      const serial = renewed.serialNumber.toLowerCase().replaceAll(/(..)(?=.)/g, "$1:");
      await eventually(
        async () => (await lab.node(1).ipsec.run("ipsec", "listcerts")).includes(serial),
        "the next certificate",
        30_000,
      );
      await reached();
      expect(lab.node(1).agent.pid).toBe(pid);
      expectNothingClear();
    });

    test("an authority follows another one while both are trusted", async () => {
      const both = [next.cert, old.cert];
      for (const number of [1, 2]) await give(number, {}, both);
      for (const node of lab.nodes)
        await eventually(
          async () =>
            (await node.ipsec.run("ipsec", "listcacerts")).match(/subject: {2}"CN=(old|next)"/g)?.length === 2,
          "both authorities",
          30_000,
        );
      await reached();
      await give(1, { ca: next }, both);
      await agreeAnew();
      await reached();
      await eventually(
        async () => /authentication of 'n1' with RSA.* successful/.test(lab.node(2).ipsec.log),
        "node 2 to know node 1",
      );
      await give(2, { ca: next }, both);
      await agreeAnew();
      await reached();
      expectNothingClear();
    });

    test("a certificate of another authority is refused, nothing goes, and both say why", async () => {
      const foreign = authority("foreign");
      // It takes the other's: only what it shows itself is not right.
      await give(2, { ca: foreign }, [foreign.cert, next.cert, old.cert]);
      await told(lab.node(1), /nothing goes to the pods of node "n2" at .*: its certificate is of an authority/);
      await expectNothingBetween();
      expect(lab.node(1).ipsec.log).toMatch(/no issuer certificate found for "O=pipette.io, CN=n2"/);
      await give(2, { ca: next }, [next.cert, old.cert]);
      await reached();
    });

    test("a certificate that has ended is refused, nothing goes, and the status says why", async () => {
      const ends = Date.now() + 25_000;
      await give(2, { ca: next, until: 25 / 3600 }, [next.cert, old.cert]);
      await reached();
      await Bun.sleep(Math.max(0, ends + 1_500 - Date.now()));
      await told(lab.node(2), /the node's certificate for IPsec has ended at/);
      await agreeAnew();
      await expectNothingBetween();
      await give(2, { ca: next }, [next.cert, old.cert]);
      await reached();
      expectNothingClear();
    });

    test("a clock that is far ahead ends the certificate: nothing goes, and status and doctor say what it shows", async () => {
      const node = lab.node(1);
      node.ipsec.env = clock.env;
      await node.ipsec.startMonitor();
      await reached();
      await clock.step(400 * dayMs);
      const year = new Date(Date.now() + 400 * dayMs).getUTCFullYear();
      const cause = `certificate for IPsec has ended at .*, and this node's clock says ${year}-`;
      await told(node, new RegExp(cause));
      const doctor = await node.namespace.start([
        ...node.home.command.slice(-1),
        "doctor",
        "--config",
        node.home.configFile,
      ]).ended;
      expect(doctor.stdout).toMatch(new RegExp(cause));
      await expectNothingBetween();
      await clock.step(-400 * dayMs);
      await reached();
      expectNothingClear();
    });
  },
);
