/** What runs in a thread of a simulation: handlers, at the simulated time. */
import "./virtual-date.ts";
import "../adapters/thread/thread.ts";
