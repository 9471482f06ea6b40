import { expect, test } from "vitest";
import type { HcnEndpoint } from "../../protocols/hcn/mod.ts";
import { EndpointListing } from "./endpoint-listing.ts";

const endpoint = (id: string): HcnEndpoint => ({
  id,
  name: id,
  networkId: "",
  namespaceId: "",
  addresses: [],
  mac: "",
  isRemote: false,
  document: {},
});
const idsOf = (listing: EndpointListing): readonly string[] => listing.all().map(({ id }) => id);

test("what we did while HNS was asked counts more than its answer", async () => {
  const answer = Promise.withResolvers<readonly HcnEndpoint[]>();
  const listing = new EndpointListing(() => answer.promise);
  listing.note(endpoint("before"));
  const looked = listing.refresh();
  listing.note(endpoint("made"));
  listing.forget("deleted");
  answer.resolve([endpoint("deleted"), endpoint("other")]);
  await looked;
  expect(idsOf(listing)).toEqual(["other", "made"]);
  expect(listing.get("deleted")).toBeUndefined();
});

test("a look that fails leaves what was known, and looks at once are one", async () => {
  let looks = 0;
  const listing = new EndpointListing(async () => {
    if (looks++ > 0) throw new Error("away");
    return [endpoint("a")];
  });
  await Promise.all([listing.refresh(), listing.refresh()]);
  expect([looks, idsOf(listing)]).toEqual([1, ["a"]]);
  await expect(listing.refresh()).rejects.toThrow("away");
  expect(idsOf(listing)).toEqual(["a"]);
});
