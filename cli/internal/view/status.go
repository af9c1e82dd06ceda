// Package view shows an operator what a mesh is doing.
package view

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/terminal"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// askLimit bounds each question to a daemon: one that hangs is shown as such.
const askLimit = 3 * time.Second

// Status is what `keel status -o json` prints.
type Status struct {
	DataDir string   `json:"dataDir"`
	Server  string   `json:"server"`
	Daemons []Daemon `json:"daemons"`
	Leaders []Leader `json:"leaders"`
	Nodes   []Node   `json:"nodes"`
	// Problem says why daemons or nodes are not known.
	Problem string `json:"problem,omitempty"`
}

// Daemon is one process of the mesh.
type Daemon struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Version string    `json:"version,omitempty"`
	Status  string    `json:"statusAddress,omitempty"`
	Log     string    `json:"log"`
	Errors  []Failure `json:"lastErrors,omitempty"`
	Queues  []Queue   `json:"queues,omitempty"`
	// Problem says why the daemon does not answer.
	Problem string `json:"problem,omitempty"`

	roles []*introspectionv1.Role
}

// Failure is the last error of a part of a daemon. It stays after the part has succeeded.
type Failure struct {
	Source  string    `json:"source"`
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
	// Count is how often the part has failed since the daemon's start.
	Count int64 `json:"count"`
}

// Queue is a work queue of a daemon.
type Queue struct {
	Name string `json:"name"`
	// Depth is how many entries wait, Oldest how long the first of them has waited; 0 if that is not known.
	Depth  int64         `json:"depth"`
	Oldest time.Duration `json:"oldestNanoseconds,omitempty"`
}

// Leader is who does what at most one replica does.
type Leader struct {
	Lease  string    `json:"lease"`
	Daemon string    `json:"daemon"`
	Holder string    `json:"holder"`
	Since  time.Time `json:"since,omitzero"`
}

// Node is one node as the API shows it.
type Node struct {
	Name   string `json:"name"`
	Ready  string `json:"ready"`
	Reason string `json:"reason,omitempty"`
	Pods   int    `json:"pods"`
}

// States of a daemon.
const (
	stateRunning = "running"
	stateSilent  = "running, does not answer"
	stateEnded   = "ended"
)

// Collect asks every daemon and the API. A mesh that is down is not asked.
func Collect(ctx context.Context, m *mesh.Mesh) Status {
	status := Status{DataDir: m.Layout.Dir, Server: m.ServerURL(), Daemons: []Daemon{}, Leaders: []Leader{},
		Nodes: []Node{}}
	processes, problem := processesOf(ctx, m)
	if problem != "" {
		status.Problem = problem
		return status
	}
	var wait sync.WaitGroup
	var err error
	wait.Go(func() { status.Nodes, err = nodes(ctx, m) })
	status.Daemons, status.Leaders = describeAll(ctx, m, processes)
	wait.Wait()
	if err != nil {
		status.Problem = err.Error()
	}
	return status
}

// Daemons asks every daemon, and not the API. If the mesh is down, problem says so.
func Daemons(ctx context.Context, m *mesh.Mesh) (daemons []Daemon, leaders []Leader, problem string) {
	processes, problem := processesOf(ctx, m)
	if problem != "" {
		return nil, nil, problem
	}
	daemons, leaders = describeAll(ctx, m, processes)
	return daemons, leaders, ""
}

// processesOf lists the processes of a mesh, or says why there are none.
func processesOf(ctx context.Context, m *mesh.Mesh) (processes []mesh.Process, problem string) {
	processes, err := m.Processes(ctx)
	switch {
	case err != nil:
		return nil, err.Error()
	case len(processes) == 0:
		return nil, "the mesh is down: " + m.Maker() + " starts it"
	}
	return processes, ""
}

// describeAll asks the processes at the same time.
func describeAll(ctx context.Context, m *mesh.Mesh, processes []mesh.Process) (daemons []Daemon, leaders []Leader) {
	daemons, leaders = make([]Daemon, len(processes)), []Leader{}
	var wait sync.WaitGroup
	for i, process := range processes {
		wait.Go(func() { daemons[i] = describe(ctx, m, process) })
	}
	wait.Wait()
	for _, daemon := range daemons {
		for _, role := range daemon.roles {
			if role.GetLeading() {
				leaders = append(leaders, Leader{
					Lease: role.GetName(), Daemon: daemon.Name, Holder: role.GetHolder(),
					Since: role.GetSince().AsTime(),
				})
			}
		}
	}
	return daemons, leaders
}

func describe(ctx context.Context, m *mesh.Mesh, process mesh.Process) Daemon {
	daemon := Daemon{Name: process.Name, State: stateEnded, Log: process.Log}
	if !process.Alive {
		return daemon
	}
	daemon.State, daemon.PID, daemon.Started = stateRunning, process.PID, process.Started
	if _, ok := plan.NodeOfContainerd(process.Name); ok {
		return daemon
	}
	daemon.Status = m.StatusAddress(process.Name)
	answer, err := askStatus(ctx, m, process.Name)
	if err != nil {
		daemon.State, daemon.Problem = stateSilent, err.Error()
		return daemon
	}
	daemon.Version, daemon.roles = answer.GetVersion(), answer.GetRoles()
	for _, last := range answer.GetLastErrors() {
		daemon.Errors = append(daemon.Errors, Failure{last.GetSource(), last.GetMessage(),
			last.GetTime().AsTime(), last.GetCount()})
	}
	for _, queue := range answer.GetQueues() {
		daemon.Queues = append(daemon.Queues, Queue{queue.GetName(), queue.GetDepth(), queue.GetOldest().AsDuration()})
	}
	return daemon
}

// askStatus asks a daemon for what it knows about itself.
func askStatus(ctx context.Context, m *mesh.Mesh, daemon string) (*introspectionv1.GetStatusResponse, error) {
	client, closeConn, err := m.Introspection(daemon)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeConn() }()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return client.GetStatus(ctx, &introspectionv1.GetStatusRequest{})
}

func nodes(ctx context.Context, m *mesh.Mesh) ([]Node, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	client, err := m.Client()
	if err != nil {
		return []Node{}, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return []Node{}, fmt.Errorf("listing the nodes: %w", err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return []Node{}, fmt.Errorf("listing the Pods: %w", err)
	}
	return summarize(list.Items, pods.Items), nil
}

func summarize(nodes []corev1.Node, pods []corev1.Pod) []Node {
	count := map[string]int{}
	for _, pod := range pods {
		count[pod.Spec.NodeName]++
	}
	summary := []Node{}
	for _, node := range nodes {
		row := Node{Name: node.Name, Ready: string(corev1.ConditionUnknown), Pods: count[node.Name]}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				row.Ready = string(condition.Status)
				if condition.Status != corev1.ConditionTrue {
					row.Reason = condition.Message
				}
			}
		}
		summary = append(summary, row)
	}
	return summary
}

// WriteJSON prints the status for programs.
func (s Status) WriteJSON(out io.Writer) error {
	return writeJSON(out, s)
}

// writeJSON prints what programs read.
func writeJSON(out io.Writer, what any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// WriteTable prints the status for people.
func (s Status) WriteTable(out io.Writer, now time.Time) {
	if len(s.Daemons) == 0 {
		fmt.Fprintf(out, "%s (data in %s)\n", s.Problem, s.DataDir)
		return
	}
	table := tabwriter.NewWriter(out, 0, 4, 3, ' ', 0)
	fmt.Fprintf(table, "DAEMON\tSTATE\tPID\tAGE\tVERSION\tSTATUS ADDRESS\n")
	for _, d := range s.Daemons {
		pid, age := "-", "-"
		if d.PID != 0 {
			pid, age = fmt.Sprint(d.PID), now.Sub(d.Started).Round(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.State, pid, age, orDash(d.Version), orDash(d.Status))
	}
	fmt.Fprintf(table, "\nLEASE\tLEADER\tSINCE\n")
	for _, l := range s.Leaders {
		fmt.Fprintf(table, "%s\t%s\t%s\n", l.Lease, orDash(l.Holder), now.Sub(l.Since).Round(time.Second))
	}
	fmt.Fprintf(table, "\nNODE\tREADY\tPODS\n")
	for _, n := range s.Nodes {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", n.Name, n.Ready, n.Pods, terminal.Line(n.Reason))
	}
	table.Flush()
	for _, d := range s.Daemons {
		if d.Problem != "" {
			fmt.Fprintf(out, "\n%s does not answer: %s", d.Name, d.Problem)
		}
		for _, e := range d.Errors {
			fmt.Fprintf(out, "\n%s: last error of %s, %s ago (%d in all): %s", d.Name, e.Source,
				now.Sub(e.Time).Round(time.Second), e.Count, terminal.Line(e.Message))
		}
	}
	if s.Problem != "" {
		fmt.Fprintf(out, "\n%s", s.Problem)
	}
	fmt.Fprintf(out, "\nserver %s, data in %s\n", s.Server, s.DataDir)
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}
