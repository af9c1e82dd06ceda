package nodeproxy

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// addressOrder is which of a node's addresses is tried: the one that needs no name service first.
var addressOrder = []corev1.NodeAddressType{
	corev1.NodeInternalIP, corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalIP, corev1.NodeExternalDNS,
}

// Address is the host and port at which a node's agent listens, as the node reports them.
func Address(node *corev1.Node) (string, error) {
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		return "", fmt.Errorf("node %s has not reported the port of its agent yet", node.Name)
	}
	for _, kind := range addressOrder {
		for _, address := range node.Status.Addresses {
			if address.Type == kind && address.Address != "" {
				return net.JoinHostPort(address.Address, strconv.Itoa(int(port))), nil
			}
		}
	}
	return "", fmt.Errorf("node %s has not reported an address yet", node.Name)
}

// Location is a path at a nodeagent with its parameters.
type Location struct {
	Path  string
	Query url.Values
}

func locate(kind string, pod *corev1.Pod, container string, query url.Values) Location {
	path := "/" + kind + "/" + pod.Namespace + "/" + pod.Name
	if container != "" {
		path += "/" + container
	}
	return Location{Path: path, Query: query}
}

// LogLocation is where a container's log is.
func LogLocation(pod *corev1.Pod, container string, o *corev1.PodLogOptions) Location {
	query := url.Values{}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"follow", o.Follow}, {"previous", o.Previous}, {"timestamps", o.Timestamps}} {
		if flag.set {
			query.Set(flag.name, "true")
		}
	}
	for _, number := range []struct {
		name  string
		value *int64
	}{{"sinceSeconds", o.SinceSeconds}, {"tailLines", o.TailLines}, {"limitBytes", o.LimitBytes}} {
		if number.value != nil {
			query.Set(number.name, strconv.FormatInt(*number.value, 10))
		}
	}
	if o.SinceTime != nil {
		query.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	if o.Stream != nil {
		query.Set("stream", *o.Stream)
	}
	return locate("containerLogs", pod, container, query)
}

// MetricsLocation is where an agent says what its node, the Pods and their containers use.
func MetricsLocation() Location { return Location{Path: "/metrics/resource"} }

// Streams are the streams that a client opens to a process.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }

func (s Streams) query() url.Values {
	query := url.Values{}
	for _, stream := range []struct {
		name string
		open bool
	}{{"input", s.Stdin}, {"output", s.Stdout}, {"error", s.Stderr}, {"tty", s.TTY}} {
		if stream.open {
			query.Set(stream.name, "1")
		}
	}
	return query
}

// ExecLocation is where a command runs in a container.
func ExecLocation(pod *corev1.Pod, container string, command []string, s Streams) Location {
	query := s.query()
	query["command"] = command
	return locate("exec", pod, container, query)
}

// AttachLocation is where a container's own process is.
func AttachLocation(pod *corev1.Pod, container string, s Streams) Location {
	return locate("attach", pod, container, s.query())
}

// PortForwardLocation is where the ports of a Pod are. Clients of the older protocol name the ports in the URL, the
// others on each stream.
func PortForwardLocation(pod *corev1.Pod, ports []int32) Location {
	query := url.Values{}
	for _, port := range ports {
		query.Add("port", strconv.Itoa(int(port)))
	}
	return locate("portForward", pod, "", query)
}
