import { serveCalls } from "./call-server.ts";
import { openHcnLibrary } from "./hcn-library.windows.ts";

/** First file of a thread of its own: an entry of the executable, and imported by nobody. */
serveCalls(openHcnLibrary);
