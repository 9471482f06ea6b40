import { brokenInvariants } from "../../support/invariants.ts";

// Runs where the agent sees its files: something may be mounted over them there, which no path leads to from outside.
console.log(JSON.stringify(brokenInvariants(process.argv[2] ?? "")));
