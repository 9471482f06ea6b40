/** Services as load balancers of HNS, on networks of type L2Bridge and Overlay. */
export { HnsServices, removeServices } from "./hns-services.ts";
