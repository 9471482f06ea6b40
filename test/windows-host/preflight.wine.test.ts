import { beforeEach, expect, test } from "vitest";
import { describeWine } from "../windows/wine/describe-wine.ts";
import { executables } from "../windows/wine/prefix.ts";
import { NodeInMemory } from "./node-in-memory.ts";
import { freshNode, makeHnsNetwork, type NodeState } from "./node-state.ts";

const directory = "C:\\Program Files\\containerd\\cni\\bin";
const whole = "C:\\Program Files\\Pipette\\pipette.exe";
const dataDir = "C:\\ProgramData\\pipette";

/** A server on which everything is there. */
const sound = (): NodeState => ({
  ...freshNode(),
  system: [{ Caption: "Microsoft Windows Server 2022 Standard", BuildNumber: "20348", ProductType: 3 }],
  features: ["Hyper-V", "Hyper-V-PowerShell", "Containers", "Web-Server"].map((Name) => ({
    Name,
    InstallState: Name === "Web-Server" ? "Available" : "Installed",
  })),
  services: ["hns", "containerd"].map((Name) => ({ Name, Status: "Running" })),
  udpEndpoints: [{ LocalPort: 53, OwningProcess: 7 }],
  preferences: [
    {
      ExclusionPath: [dataDir],
      ExclusionProcess: [whole, `${directory}\\pipette.exe`, `${directory}\\pipette-ipam.exe`],
      DisableRealtimeMonitoring: false,
    },
  ],
});

describeWine("pipette.exe install --check", (wine) => {
  let node: NodeInMemory;
  beforeEach(() => {
    node = new NodeInMemory(sound());
    wine.stubs.commands.answerWith = async ({ script }) => ({ status: 0, stdout: (await node.execute(script)).stdout });
  });
  type Told = Readonly<Record<string, { readonly verdict: string; readonly is: string; readonly todo: string }>>;
  const check = async (...more: readonly string[]): Promise<{ status: number | null; told: Told; stderr: string }> => {
    const args = ["install", "--check", "--json", ...more];
    const { status, stdout, stderr } = await wine.prefix.run(`${executables}/pipette.exe`, {
      args,
      timeoutMs: 120_000,
    });
    const { checks } = JSON.parse(stdout) as { checks: { what: string; verdict: string; is: string; todo: string }[] };
    return { status, stderr, told: Object.fromEntries(checks.map(({ what, ...rest }) => [what, rest])) };
  };
  const verdicts = (told: Told): Record<string, string> =>
    Object.fromEntries(Object.entries(told).map(([what, { verdict }]) => [what, verdict]));

  test("finds a node in order, and touches nothing", async () => {
    const before = structuredClone(node.state);
    const { status, told, stderr } = await check("--node-address", "192.168.1.5");
    expect([status, stderr]).toEqual([0, ""]);
    expect(new Set(Object.values(verdicts(told)))).toEqual(new Set(["ok"]));
    expect(told["node address"]?.is).toBe('192.168.1.5 on "Ethernet0"');
    expect([node.state, node.done]).toEqual([before, []]);
  });

  test("names each thing that is missing with what to do, and goes on past what Windows does not tell", async () => {
    const { features: _, ...rest } = sound();
    Object.assign(node.state, rest, {
      system: [{ Caption: "Microsoft Windows Server 2016", BuildNumber: "14393", ProductType: 3 }],
      services: [{ Name: "HNS", Status: "Stopped" }],
      udpEndpoints: [{ LocalPort: 4789, OwningProcess: 4 }],
      preferences: [{ ExclusionPath: [], ExclusionProcess: [], DisableRealtimeMonitoring: false }],
    });
    delete node.state.features;
    makeHnsNetwork(node.state, "other", true);
    const { status, told } = await check("--node-address", "192.168.1.5");
    expect(status).toBe(1);
    expect(verdicts(told)).toEqual({
      Windows: "missing",
      "roles and features": "unknown",
      services: "missing",
      "node address": "missing",
      "tunnel ports": "advice",
      Defender: "advice",
    });
    expect(told["services"]).toMatchObject({ is: "hns stopped, containerd not there" });
    expect(told["node address"]?.is).toContain('is on "vEthernet (Ethernet0)", which is virtual');
    expect(told["tunnel ports"]?.is).toBe("UDP 4789 is process 4's");
    expect(told["Defender"]?.todo).toBe(
      `Add-MpPreference -ExclusionProcess '${whole}','${directory}\\pipette.exe','${directory}\\pipette-ipam.exe' -ExclusionPath '${dataDir}'`,
    );
  });

  test("says which addresses there are to choose from, and which roles to install", async () => {
    node.state.features = [{ Name: "Containers", InstallState: "Installed" }];
    const unsaid = await check();
    expect([unsaid.status, unsaid.told["node address"]]).toEqual([
      1,
      {
        verdict: "advice",
        is: 'this machine has 192.168.1.5 on "Ethernet0"',
        todo: "--node-address with one of 192.168.1.5",
      },
    ]);
    expect(unsaid.told["roles and features"]?.todo).toBe("Install-WindowsFeature Hyper-V,Hyper-V-PowerShell -Restart");
    const wrong = await check("--node-address", "10.0.0.9");
    expect(wrong.told["node address"]?.is).toBe('no adapter has 10.0.0.9; this machine has 192.168.1.5 on "Ethernet0"');
  });
});
