package scenario

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func getNode(w *World, name string) *corev1.Node {
	w.Helper()
	node, err := w.Client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return node
}

// nodeIP is the address at which a node is reached.
func nodeIP(w *World, name string) string {
	w.Helper()
	return nodeIPs(w, name)[0]
}

// nodeIPs are a node's addresses, one of each family of the mesh.
func nodeIPs(w *World, name string) (addresses []string) {
	w.Helper()
	node := getNode(w, name)
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			addresses = append(addresses, address.Address)
		}
	}
	if len(addresses) == 0 || len(addresses) < len(node.Spec.PodCIDRs) {
		w.Fatalf("node %s has Pods in %v and the addresses %v", name, node.Spec.PodCIDRs, node.Status.Addresses)
	}
	return addresses
}
