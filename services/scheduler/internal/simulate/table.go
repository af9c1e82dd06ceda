package simulate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// maxShown is how many nodes of a workload, and how many victims, the table names.
const maxShown = 4

// WriteTable prints the report for people: a line for each workload, and below it why Pods of it have no node.
func (r *Report) WriteTable(out io.Writer) {
	pods, fit := 0, 0
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "WORKLOAD\tFROM\tPODS\tFIT\tNODES")
	for i := range r.Workloads {
		w := &r.Workloads[i]
		pods, fit = pods+len(w.Pods), fit+w.Fit
		fmt.Fprintf(table, "%s %s/%s\t%s\t%d\t%d\t%s\n", w.Kind, w.Namespace, w.Name, w.From, len(w.Pods), w.Fit,
			w.nodes())
	}
	table.Flush()
	for i := range r.Workloads {
		r.Workloads[i].writeRefused(out)
	}
	for i, v := range r.Preempted {
		if i == maxShown {
			fmt.Fprintf(out, "\n... and %d more Pods give their room to others\n", len(r.Preempted)-i)
			break
		}
		fmt.Fprintf(out, "\n%s gives its room on %s to %s\n", v.Pod, v.Node, v.By)
	}
	if len(r.Lost) > 0 {
		fmt.Fprintf(out, "\nNobody makes these Pods again, which go with their node: %s\n", shown(r.Lost))
	}
	if len(r.Ignored) > 0 {
		fmt.Fprintf(out, "\nWithout Pods, and of no matter to them: %s\n", shown(r.Ignored))
	}
	fmt.Fprintf(out, "\n%d of %d Pods get a node, of %d nodes.\n", fit, pods, r.Nodes)
}

// nodes says how many of the Pods go where, most first.
func (w *Workload) nodes() string {
	count := map[string]int{}
	for _, p := range w.Pods {
		if p.Node != "" {
			count[p.Node]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	})
	parts := make([]string, 0, len(names))
	for _, name := range names {
		if count[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, count[name])
		}
		parts = append(parts, name)
	}
	return cmp.Or(shown(parts), "-")
}

func shown(names []string) string {
	if len(names) <= maxShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxShown], ", "), len(names)-maxShown)
}

// writeRefused says once why Pods have no node, for all that have none for one reason.
func (w *Workload) writeRefused(out io.Writer) {
	var order []Pod
	count := map[Pod]int{}
	for _, p := range w.Pods {
		if p.Node != "" {
			continue
		}
		why := Pod{Message: p.Message, WouldFit: p.WouldFit}
		if count[why] == 0 {
			order = append(order, why)
		}
		count[why]++
	}
	for _, why := range order {
		fmt.Fprintf(out, "\n%s %s/%s, %d of %d Pods: %s\n", w.Kind, w.Namespace, w.Name, count[why], len(w.Pods),
			why.Message)
		if why.WouldFit != "" {
			fmt.Fprintf(out, "  would fit: %s\n", why.WouldFit)
		}
	}
}
