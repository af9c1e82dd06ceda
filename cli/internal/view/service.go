package view

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/mesh"
)

const (
	// nodeLimit is how long a node may take to report what it has programmed; nodesAtOnce nodes are asked
	// concurrently.
	nodeLimit   = 3 * time.Second
	nodesAtOnce = 16
)

// Service holds what is known about a Service.
type Service struct {
	Workload
	// Addresses are the addresses at which clients reach it.
	Addresses []string
	// Nodes describes what each node's service proxy has programmed; NodesUnknown says why the nodes could not be
	// asked.
	Nodes        []NodeView
	NodesUnknown string
}

// NodeView describes what a node has programmed for a Service.
type NodeView struct{ Node, State string }

// programmed is a nodeagent's answer about a Service.
type programmed struct {
	Programmed bool             `json:"programmed"`
	Since      time.Time        `json:"since"`
	Ports      []programmedPort `json:"ports"`
	Problems   []string         `json:"problems"`
}

type programmedPort struct {
	Name       string   `json:"name"`
	Protocol   string   `json:"protocol"`
	ClusterIPs []string `json:"clusterIPs"`
	Port       int32    `json:"port"`
	NodePort   int32    `json:"nodePort"`
	Endpoints  []string `json:"endpoints"`
}

// explainService asks the API, the controllers of the Service's endpoints, and all nodes.
func explainService(ctx context.Context, m *mesh.Mesh, kind Kind, namespace, name string) (Writer, error) {
	w, err := explainWorkload(ctx, m, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	client, err := m.Client()
	if err != nil {
		return nil, err
	}
	s := Service{Workload: w}
	if object, ok := w.Object.(*corev1.Service); ok {
		s.Addresses = addresses(object)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		s.NodesUnknown = "listing the nodes: " + err.Error()
		return s, nil
	}
	s.Nodes = askNodes(ctx, client, nodes.Items, namespace, name)
	return s, nil
}

// addresses returns where clients reach a Service according to the API, whether or not a node forwards its
// traffic.
func addresses(s *corev1.Service) []string {
	spec := &s.Spec
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		return []string{"its name stands for " + spec.ExternalName}
	case spec.ClusterIP == corev1.ClusterIPNone:
		return []string{"it is headless: its name leads to the Pods themselves"}
	}
	var ports, nodePorts, balancers, all []string
	for _, port := range spec.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s", port.Port, port.Protocol))
		if port.NodePort > 0 {
			nodePorts = append(nodePorts, fmt.Sprintf("%d/%s", port.NodePort, port.Protocol))
		}
	}
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		balancers = append(balancers, cmp.Or(ingress.IP, ingress.Hostname))
	}
	say := func(what string, hosts, ports []string) {
		if len(hosts) > 0 && len(ports) > 0 {
			all = append(all, what+strings.Join(hosts, ", ")+", port "+strings.Join(ports, ", "))
		}
	}
	say("cluster IP ", spec.ClusterIPs, ports)
	say("", []string{"every node"}, nodePorts)
	say("load balancer ", balancers, ports)
	if spec.Type == corev1.ServiceTypeLoadBalancer && len(balancers) == 0 {
		all = append(all, "waits for somebody to give it a load balancer")
	}
	say("external IP ", spec.ExternalIPs, ports)
	return all
}

// askNodes asks the nodes through the apiserver, several at a time.
func askNodes(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node, namespace, name string,
) []NodeView {
	views, places := make([]NodeView, len(nodes)), make(chan struct{}, nodesAtOnce)
	var asked sync.WaitGroup
	for i := range nodes {
		asked.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, nodeLimit)
			defer cancel()
			answer, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", nodes[i].Name, "proxy",
				"serviceproxy", namespace, name).DoRaw(ctx)
			views[i] = NodeView{Node: nodes[i].Name, State: programmedState(answer, err)}
		})
	}
	asked.Wait()
	return views
}

// programmedState puts a node's answer into words.
func programmedState(answer []byte, err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "runs no service proxy of Keelson's"
	case err != nil:
		return "does not answer: " + err.Error()
	}
	var p programmed
	if err := json.Unmarshal(answer, &p); err != nil {
		return "answers what cannot be read: " + err.Error()
	}
	if !p.Programmed {
		return "has not programmed it"
	}
	state := "has programmed it"
	if !p.Since.IsZero() {
		state += " since " + p.Since.Local().Format(time.DateTime)
	}
	var ports []string
	for _, port := range p.Ports {
		ports = append(ports, port.text())
	}
	if said := append(ports, p.Problems...); len(said) > 0 {
		state += ": " + strings.Join(said, "; ")
	}
	return state
}

func (p programmedPort) text() string {
	text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
	if p.Name != "" {
		text = p.Name + " " + text
	}
	if len(p.ClusterIPs) > 0 {
		text += " of " + strings.Join(p.ClusterIPs, ", ")
	}
	if p.NodePort > 0 {
		text += fmt.Sprintf(" and node port %d", p.NodePort)
	}
	if len(p.Endpoints) == 0 {
		return text + " is refused, there is no endpoint"
	}
	return text + " to " + strings.Join(p.Endpoints, ", ")
}

// Write prints what is known.
func (s Service) Write(out io.Writer) {
	s.Workload.Write(out)
	fmt.Fprintln(out, "\naddresses:")
	for _, address := range s.Addresses {
		fmt.Fprintf(out, "  %s\n", address)
	}
	fmt.Fprintln(out, "\nnodes:")
	if s.NodesUnknown != "" {
		fmt.Fprintf(out, "  %s\n", s.NodesUnknown)
	}
	if s.NodesUnknown == "" && len(s.Nodes) == 0 {
		fmt.Fprintln(out, "  there is none that could carry it")
	}
	for _, node := range s.Nodes {
		fmt.Fprintf(out, "  %s: %s\n", node.Node, node.State)
	}
}
