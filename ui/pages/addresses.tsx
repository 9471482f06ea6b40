import type { DocumentLease } from "../../shared/documents/mod.ts";
import { addressesIn, cellOf } from "../model/cells.ts";
import { forecast, fullest, type NodePool, poolHealth, poolsOf } from "../model/pools.ts";
import { Choice } from "../parts/choice.tsx";
import { Legend } from "../parts/legend.tsx";
import { Card, Faults, Page } from "../parts/page.tsx";
import { cellText, StripCanvas } from "../parts/strip-canvas.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { age, counted, grouped, listed, percent } from "../parts/words.ts";
import { hrefTo, refine, route } from "../route.ts";
import { byName, documentOf, documentsOf } from "../stream/store.ts";
import { AddressHistory } from "./address-history.tsx";

const allNodes = "all nodes";
/** Nodes whose strips are drawn together; the others one by one. */
const mostStrips = 12;

export function Addresses() {
  const all = documentsOf("addresses");
  const pools = poolsOf(all);
  const { node = "", address = "" } = route.value.query;
  const shown = pools.filter((each) => node === "" || each.node === node);
  const tight = fullest(pools);
  const nodes = [...new Set(pools.map((each) => each.node))].sort(byName);
  return (
    <Page title="Addresses" health={tight === undefined ? "unknown" : poolHealth(tight.free)} answer={answerOf(pools)}>
      <div class="bar">
        <Choice
          label="Node"
          value={node === "" ? allNodes : node}
          of={[allNodes, ...nodes]}
          onChange={(value) => refine({ node: value === allNodes ? "" : value, address: "" })}
        />
        <Legend />
      </div>
      <Faults of={all} />
      {shown.slice(0, mostStrips).map((each) => (
        <PoolCard key={`${each.node} ${each.pool.network} ${each.pool.range}`} of={each} address={address} />
      ))}
      {shown.length > mostStrips && (
        <p class="quiet">{counted(shown.length - mostStrips, "pool")} more: choose a node to see its own</p>
      )}
      {node !== "" && address !== "" && <AddressHistory node={node} address={address} />}
      {shown.length > 1 && <PoolTable pools={shown} />}
      {(node !== "" || nodes.length === 1) && <Leases node={node === "" ? (nodes[0] ?? "") : node} />}
    </Page>
  );
}

/** Is there room? */
function answerOf(pools: readonly NodePool[]): string {
  const tight = fullest(pools);
  if (tight === undefined) return "No pool of addresses is known yet.";
  const full = pools.filter(({ free }) => free === 0);
  if (full.length > 0)
    return `No address is left in ${listed(full.map(({ node, pool }) => `${pool.network} on ${node}`))}.`;
  const taken = pools.reduce((sum, { pool }) => sum + pool.allocated, 0);
  const least = `the fullest pool, ${tight.pool.network} on ${tight.node}, has ${percent(tight.free, 1)} left`;
  return `There is ${poolHealth(tight.free) === "good" ? "room" : "little room"}: ${counted(taken, "address is", "addresses are")} given out, and ${least}.`;
}

function PoolCard({ of: { node, pool, free }, address }: { readonly of: NodePool; readonly address: string }) {
  const leases = documentOf("leases", node)?.document?.leases ?? [];
  const { perHour, fullInMs } = forecast(pool, leases, Date.now());
  const pace =
    fullInMs === undefined ? "" : `, full in ${age(fullInMs)} at the pace of the last hour (${perHour} more)`;
  const numbers = `${grouped(pool.allocated)} allocated, ${pool.cooling} cooling, ${pool.releasing} releasing, ${percent(free, 1)} left${pace}`;
  return (
    <Card title={`${pool.network} on ${node}`}>
      <p class="quiet">
        {pool.range}: {numbers}
      </p>
      {pool.strips.map((strip) => {
        const chosen = cellOf(strip, address);
        const title = `Addresses ${strip.first} to ${strip.last} of ${pool.network} on ${node}`;
        return (
          <div key={strip.first} class="strip-box">
            <StripCanvas
              strip={strip}
              title={title}
              chosen={chosen}
              onChoose={(cell) => refine({ node, address: addressesIn(strip, cell)?.first ?? "" })}
            />
            {strip.rest !== undefined && <p class="quiet">{strip.rest}</p>}
            {chosen !== undefined && <p class="told">{chosenText(cellText(strip, chosen), address, leases)}</p>}
          </div>
        );
      })}
    </Card>
  );
}

/** Who has it, or had it last. */
function chosenText(text: string, address: string, leases: readonly DocumentLease[]): string {
  const lease = leases.find((each) => each.address.split("/")[0] === address);
  if (lease === undefined) return text;
  const until = lease.releasedAt === undefined ? "" : ` until ${lease.releasedAt}`;
  return `${text}, ${lease.releasedAt === undefined ? "of" : "last of"} ${ownerText(lease)} since ${lease.allocatedAt}${until}`;
}

const ownerText = ({ podNamespace, podName, containerId }: DocumentLease): string =>
  podName === undefined ? containerId : `${podNamespace ?? ""}/${podName}`;

function PoolTable({ pools }: { readonly pools: readonly NodePool[] }) {
  const columns: readonly Column<NodePool>[] = [
    {
      title: "Node",
      text: ({ node }) => node,
      cell: ({ node }) => <a href={hrefTo("addresses", { node })}>{node}</a>,
    },
    { title: "Network", text: ({ pool }) => pool.network },
    { title: "Range", text: ({ pool }) => pool.range },
    { title: "Allocated", text: ({ pool }) => pool.allocated, isNumber: true },
    { title: "Cooling", text: ({ pool }) => pool.cooling, isNumber: true },
    { title: "Left", text: ({ free }) => free, cell: ({ free }) => percent(free, 1), isNumber: true },
  ];
  return (
    <Card title="Pools">
      <Table
        caption="Pools of addresses"
        columns={columns}
        rows={pools}
        keyOf={({ node, pool }) => `${node} ${pool.network} ${pool.range}`}
        empty="No pool is known yet"
      />
    </Card>
  );
}

function Leases({ node }: { readonly node: string }) {
  const entry = documentOf("leases", node);
  const columns: readonly Column<DocumentLease>[] = [
    {
      title: "Address",
      text: ({ address }) => address,
      cell: ({ address }) => (
        <a href={hrefTo("addresses", { node, address: address.split("/")[0] })}>{address.split("/")[0]}</a>
      ),
    },
    { title: "State", text: ({ state }) => state },
    { title: "Pod", text: ownerText },
    { title: "Network", text: ({ network }) => network },
    { title: "Since", text: ({ allocatedAt }) => allocatedAt },
    { title: "Until", text: ({ releasedAt = "" }) => releasedAt },
  ];
  return (
    <Card title={`Leases of ${node}`}>
      <Table
        caption={`Who has which address of ${node}, and who had it last`}
        columns={columns}
        rows={entry?.document?.leases ?? []}
        omitted={entry?.document?.omitted ?? 0}
        keyOf={({ network, address }) => `${network} ${address}`}
        empty={entry?.document === undefined ? "Not told yet" : "No address has been given out"}
      />
    </Card>
  );
}
