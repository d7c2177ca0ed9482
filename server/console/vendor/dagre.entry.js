// The layout of the graph.
import dagre from "@dagrejs/dagre";
export const { layout, graphlib } = dagre;
