package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/subprocess"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// Top is what `keel top` shows: what the daemons of this machine, the nodes and the Pods use. What uses most is first.
type Top struct {
	Daemons []DaemonUsage `json:"daemons"`
	Nodes   []NodeUsage   `json:"nodes"`
	Pods    []PodUsage    `json:"pods"`
	// Problems say what could not be measured.
	Problems []string `json:"problems,omitempty"`
}

// DaemonUsage is what one process of the mesh uses.
type DaemonUsage struct {
	Name string `json:"name"`
	// MilliCPU is in thousandths of a processor, over the time of the measurement; Memory is resident, in bytes.
	MilliCPU int64 `json:"milliCPU"`
	Memory   int64 `json:"memory"`
	Threads  int   `json:"threads"`
	// Queued is how many entries wait in its queues, Oldest how long the first of them has waited.
	Queued int64         `json:"queued"`
	Oldest time.Duration `json:"oldestNanoseconds,omitempty"`
}

// NodeUsage is what all Pods of a node, and the node itself, use, and what it can give to Pods.
type NodeUsage struct {
	Name              string `json:"name"`
	MilliCPU          int64  `json:"milliCPU"`
	AllocatableCPU    int64  `json:"allocatableMilliCPU"`
	Memory            int64  `json:"memory"`
	AllocatableMemory int64  `json:"allocatableMemory"`
}

// PodUsage is what the containers of a Pod use together.
type PodUsage struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	MilliCPU  int64  `json:"milliCPU"`
	Memory    int64  `json:"memory"`
}

// Measure measures the daemons over an interval, and asks the API what nodes and Pods use, of which it keeps the first.
func Measure(ctx context.Context, m *mesh.Mesh, interval time.Duration, pods int) Top {
	top := Top{Daemons: []DaemonUsage{}, Nodes: []NodeUsage{}, Pods: []PodUsage{}}
	processes, err := m.Processes(ctx)
	if err != nil {
		return Top{Problems: []string{err.Error()}}
	}
	processes = slices.DeleteFunc(processes, func(p mesh.Process) bool { return !p.Alive })
	if len(processes) == 0 {
		return Top{Problems: []string{"the mesh is down: " + m.Maker() + " starts it"}}
	}
	var wait sync.WaitGroup
	var ofDaemons, ofAPI []string
	wait.Go(func() { top.Daemons, ofDaemons = daemonUsages(ctx, m, processes, interval) })
	if !m.State.Worker() {
		wait.Go(func() {
			if err := top.ask(ctx, m); err != nil {
				ofAPI = []string{err.Error()}
			}
		})
	}
	wait.Wait()
	top.Problems = slices.Concat(ofDaemons, ofAPI)
	top.sort(pods)
	return top
}

// daemonUsages measures processes over an interval.
func daemonUsages(ctx context.Context, m *mesh.Mesh, processes []mesh.Process,
	interval time.Duration) (usages []DaemonUsage, problems []string) {
	usages = make([]DaemonUsage, len(processes))
	failed := make([]error, len(processes))
	var wait sync.WaitGroup
	for i, p := range processes {
		wait.Go(func() { usages[i], failed[i] = daemonUsage(ctx, m, p, interval) })
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	return usages, problems
}

// daemonUsage measures one process, and asks it for its queues. What is known before an error is returned with it.
func daemonUsage(ctx context.Context, m *mesh.Mesh, p mesh.Process, interval time.Duration) (DaemonUsage, error) {
	usage := DaemonUsage{Name: p.Name}
	before, err := subprocess.UsageOf(p.PID)
	if err != nil {
		return usage, err
	}
	begun := time.Now()
	select {
	case <-ctx.Done():
		return usage, fmt.Errorf("measuring %s: %w", p.Name, context.Cause(ctx))
	case <-time.After(interval):
	}
	after, err := subprocess.UsageOf(p.PID)
	if err != nil {
		return usage, err
	}
	usage.MilliCPU = milliCPU(after.CPU-before.CPU, time.Since(begun))
	usage.Memory, usage.Threads = after.Memory, after.Threads
	if _, isRuntime := plan.NodeOfContainerd(p.Name); isRuntime {
		return usage, nil // it has no queues that it tells of
	}
	answer, err := askStatus(ctx, m, p.Name)
	if err != nil {
		return usage, fmt.Errorf("%s does not answer: %w", p.Name, err)
	}
	usage.Queued, usage.Oldest = waiting(answer.GetQueues())
	return usage, nil
}

// milliCPU is the CPU time within a time, in thousandths of a processor, rounded to the nearest.
func milliCPU(used, within time.Duration) int64 {
	if within <= 0 {
		return 0
	}
	return (1000*used.Nanoseconds() + within.Nanoseconds()/2) / within.Nanoseconds()
}

// waiting is how many entries all queues have, and how long the first has waited.
func waiting(queues []*introspectionv1.Queue) (entries int64, oldest time.Duration) {
	for _, q := range queues {
		entries += q.GetDepth()
		oldest = max(oldest, q.GetOldest().AsDuration())
	}
	return entries, oldest
}

// ask asks the API what nodes and Pods use.
func (t *Top) ask(ctx context.Context, m *mesh.Mesh) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	client, err := m.Client()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	ofNodes, err := metrics(ctx, m, "nodes")
	if err != nil {
		return err
	}
	ofPods, err := metrics(ctx, m, "pods")
	if err != nil {
		return err
	}
	t.Nodes, t.Pods = nodeUsages(nodes.Items, ofNodes), podUsages(ofPods)
	return nil
}

// metrics lists the objects of a kind of the API metrics.k8s.io.
func metrics(ctx context.Context, m *mesh.Mesh, kind string) ([]unstructured.Unstructured, error) {
	client, err := m.DynamicClient()
	if err != nil {
		return nil, err
	}
	asked := schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: kind}
	list, err := client.Resource(asked).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking what %s use: %w", kind, err)
	}
	return list.Items, nil
}

// nodeUsages joins what nodes use with what they can give. A node of which nothing is measured is left out.
func nodeUsages(nodes []corev1.Node, measured []unstructured.Unstructured) []NodeUsage {
	of := make(map[string]map[string]any, len(measured))
	for _, u := range measured {
		of[u.GetName()] = u.Object
	}
	usages := []NodeUsage{}
	for _, n := range nodes {
		if of[n.Name] == nil {
			continue
		}
		cpu, memory := used(of[n.Name])
		usages = append(usages, NodeUsage{Name: n.Name, MilliCPU: cpu, Memory: memory,
			AllocatableCPU:    n.Status.Allocatable.Cpu().MilliValue(),
			AllocatableMemory: n.Status.Allocatable.Memory().Value()})
	}
	return usages
}

// podUsages adds up what the containers of each Pod use.
func podUsages(measured []unstructured.Unstructured) []PodUsage {
	usages := []PodUsage{}
	for _, u := range measured {
		pod := PodUsage{Namespace: u.GetNamespace(), Name: u.GetName()}
		containers, _, _ := unstructured.NestedSlice(u.Object, "containers")
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok {
				cpu, memory := used(container)
				pod.MilliCPU, pod.Memory = pod.MilliCPU+cpu, pod.Memory+memory
			}
		}
		usages = append(usages, pod)
	}
	return usages
}

// used reads the field usage; what is missing or no quantity counts as 0.
func used(of map[string]any) (milliCPU, memory int64) {
	amount := func(name string) resource.Quantity {
		text, _, _ := unstructured.NestedString(of, "usage", name)
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return resource.Quantity{}
		}
		return q
	}
	cpu, bytes := amount("cpu"), amount("memory")
	return cpu.MilliValue(), bytes.Value()
}

// sort brings what uses most CPU, then most memory, to the front, and keeps so many Pods.
func (t *Top) sort(pods int) {
	mostFirst(t.Daemons, func(d DaemonUsage) (milliCPU, memory int64) { return d.MilliCPU, d.Memory })
	mostFirst(t.Nodes, func(n NodeUsage) (milliCPU, memory int64) { return n.MilliCPU, n.Memory })
	mostFirst(t.Pods, func(p PodUsage) (milliCPU, memory int64) { return p.MilliCPU, p.Memory })
	t.Pods = t.Pods[:min(len(t.Pods), pods)]
}

func mostFirst[U any](all []U, usage func(U) (milliCPU, memory int64)) {
	slices.SortStableFunc(all, func(a, b U) int {
		cpuA, memoryA := usage(a)
		cpuB, memoryB := usage(b)
		return cmp.Or(cmp.Compare(cpuB, cpuA), cmp.Compare(memoryB, memoryA))
	})
}

// WriteJSON prints the usage for programs.
func (t Top) WriteJSON(out io.Writer) error {
	return writeJSON(out, t)
}

// WriteTable prints the usage for people.
func (t Top) WriteTable(out io.Writer, _ time.Time) {
	table := tabwriter.NewWriter(out, 0, 4, 3, ' ', 0)
	if len(t.Daemons) > 0 {
		fmt.Fprintf(table, "DAEMON\tCPU\tMEMORY\tTHREADS\tQUEUED\tOLDEST\n")
	}
	for _, d := range t.Daemons {
		fmt.Fprintf(table, "%s\t%dm\t%dMi\t%d\t%d\t%s\n", d.Name, d.MilliCPU, d.Memory>>20, d.Threads, d.Queued,
			d.Oldest.Round(time.Millisecond))
	}
	if len(t.Nodes) > 0 {
		fmt.Fprintf(table, "\nNODE\tCPU\tCPU%%\tMEMORY\tMEMORY%%\n")
	}
	for _, n := range t.Nodes {
		fmt.Fprintf(table, "%s\t%dm\t%s\t%dMi\t%s\n", n.Name, n.MilliCPU, percent(n.MilliCPU, n.AllocatableCPU),
			n.Memory>>20, percent(n.Memory, n.AllocatableMemory))
	}
	if len(t.Pods) > 0 {
		fmt.Fprintf(table, "\nNAMESPACE\tPOD\tCPU\tMEMORY\n")
	}
	for _, p := range t.Pods {
		fmt.Fprintf(table, "%s\t%s\t%dm\t%dMi\n", p.Namespace, p.Name, p.MilliCPU, p.Memory>>20)
	}
	table.Flush()
	for _, problem := range t.Problems {
		fmt.Fprintln(out, problem)
	}
}

// percent is the share of a whole; "-" if there is none.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", int64(100*float64(part)/float64(whole)+.5))
}
