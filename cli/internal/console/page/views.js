// What the views show: their topics, their tables, and the columns of these.

import { lines, link, list, progress, time, toned } from "./cells.js";
import { duration, many, quantity } from "./format.js";

const workloads = ["deployments", "statefulsets", "daemonsets", "jobs"];

// topics are what each view follows.
export const topics = {
  workloads, pods: ["pods"], nodes: ["nodes", "pods"], mesh: ["daemons"], events: ["events"],
};

// topicOf are the topics of the kinds that have a view of their own for each object.
export const topicOf = {
  Deployment: "deployments", StatefulSet: "statefulsets", DaemonSet: "daemonsets", Job: "jobs", Pod: "pods",
  Node: "nodes",
};

// address is that of the view of an object; "" for one that has none.
export function address(kind, namespace, name) {
  const topic = Object.hasOwn(topicOf, kind) ? topicOf[kind] : ""; // Events are about any kind
  return topic ? `#/${["object", topic, namespace || "-", name].map(encodeURIComponent).join("/")}` : "";
}

// named links to an object.
const named = ({ kind, namespace, name }) => {
  const href = address(kind, namespace, name);
  return href ? link(name, href) : name;
};

const namespace = { name: "Namespace", cell: (row) => row.namespace ?? "" };
const created = { name: "Age", cell: (row) => time(row.created) };

const podColumns = [
  { name: "Pod", cell: named },
  namespace,
  { name: "State", cell: (row) => toned(row.state, row.tone) },
  { name: "Ready", cell: (row) => `${row.ready} of ${row.containers}` },
  { name: "Waits", cell: (row) => row.waits ?? "" },
  { name: "Node", cell: (row) => (row.node ? link(row.node, address("Node", "", row.node)) : "") },
  { name: "Restarts", cell: (row) => String(row.restarts) },
  created,
];

const queues = (daemon) => (daemon.queues ?? []).filter(({ depth }) => depth > 0).map(({ name, depth, oldestNanoseconds }) =>
  `${name}: ${depth}${oldestNanoseconds ? `, the first for ${duration(oldestNanoseconds / 1e9)}` : ""}`);

const errors = (daemon) => (daemon.lastErrors ?? []).map(({ source, message, count }) => `${source} (${count}): ${message}`);

const daemonTone = (daemon) => (daemon.state === "running" ? "good" : "bad");

// nodePods returns the Pods of a node, by the rows of all Pods.
export const nodePods = (pods, node) => pods.filter(({ row }) => row.node === node);

// tables are the tables of the page: the topics that their rows are from, and where a topic has rows of several kinds,
// which of them. compare orders the rows, otherwise their names do; tone says how what a row shows is.
export const tables = {
  workloads: {
    words: ["workload"], from: workloads,
    columns: [
      { name: "Workload", cell: named }, { name: "Kind", cell: (row) => row.kind }, namespace,
      { name: "Rollout", cell: (row) => progress(row.done, row.wanted, row.state, row.tone) },
      { name: "Images", cell: (row) => lines(row.images ?? []) }, created,
    ],
  },
  pods: { words: ["Pod"], from: ["pods"], columns: podColumns },
  owned: { words: ["Pod"], from: ["pods"], columns: podColumns },
  nodes: {
    words: ["node"], from: ["nodes"],
    columns: [
      { name: "Node", cell: named }, { name: "State", cell: (row) => toned(row.state, row.tone) },
      {
        name: "Runs", cell: ({ running }) => list(many(running.length, "Pod"), running.map(({ row }) => ({
          text: `${row.namespace}/${row.name}`, href: address("Pod", row.namespace, row.name),
        }))),
      },
      { name: "Room", cell: (row) => lines([`${row.cpu ?? "0"} CPU`, quantity(row.memory), many(row.mostPods, "Pod")]) },
      { name: "Problems", cell: (row) => lines([...(row.problems ?? []), ...(row.taints ?? []).map((t) => `taint ${t}`)]) },
      { name: "Version", cell: (row) => row.version ?? "" }, created,
    ],
  },
  daemons: {
    words: ["daemon"], from: ["daemons"], only: ({ row }) => row.daemon, tone: ({ daemon }) => daemonTone(daemon),
    columns: [
      { name: "Daemon", cell: ({ daemon }) => daemon.name },
      { name: "State", cell: ({ daemon }) => toned(daemon.state, daemonTone(daemon)) },
      { name: "Queues", cell: ({ daemon }) => lines(queues(daemon)) },
      { name: "Last errors", cell: ({ daemon }) => lines([...(daemon.problem ? [daemon.problem] : []), ...errors(daemon)]) },
      { name: "Version", cell: ({ daemon }) => daemon.version ?? "" },
      { name: "Runs for", cell: ({ daemon }) => time(daemon.started) },
    ],
  },
  leaders: {
    words: ["Lease"], from: ["daemons"], only: ({ row }) => row.leader, tone: () => "good",
    columns: [
      { name: "Lease", cell: ({ leader }) => leader.lease }, { name: "Daemon", cell: ({ leader }) => leader.daemon },
      { name: "Leader", cell: ({ leader }) => leader.holder }, { name: "For", cell: ({ leader }) => time(leader.since) },
    ],
  },
  events: {
    words: ["Event"], from: ["events"], compare: (a, b) => (b.row.at ?? "").localeCompare(a.row.at ?? ""),
    columns: [
      { name: "Reason", cell: (row) => row.reason }, { name: "Ago", cell: (row) => time(row.at) },
      { name: "Type", cell: (row) => toned(row.type, row.tone) },
      { name: "About", cell: (row) => {
        const href = address(row.kind, row.namespace, row.name);
        const text = `${row.kind} ${row.name}`;
        return href ? link(text, href) : text;
      } },
      namespace, { name: "Message", cell: (row) => (row.count > 1 ? `${row.message} (${row.count} times)` : row.message) },
      { name: "By", cell: (row) => row.by ?? "" },
    ],
  },
};
