// The charts.
import uPlot from "uplot";
export default uPlot;
