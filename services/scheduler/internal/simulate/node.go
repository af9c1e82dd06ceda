package simulate

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// maxNodes is how many nodes of one kind may be added.
const maxNodes = 100_000

// readNode reads FILE or FILE=N.
func readNode(flag string) (addition, error) {
	file, number := splitCount(flag)
	if _, err := os.Stat(flag); err == nil {
		file, number = flag, "1"
	}
	count, err := strconv.Atoi(number)
	if err != nil || count < 1 || count > maxNodes {
		return addition{}, fmt.Errorf("%q is no number of nodes, it must be between 1 and %d", number, maxNodes)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return addition{}, err
	}
	documents, err := parse(file, bytes.NewReader(data))
	if err != nil {
		return addition{}, err
	}
	if len(documents) != 1 {
		return addition{}, fmt.Errorf("%s has %d objects, it must have one Node", file, len(documents))
	}
	node, ok := documents[0].object.(*corev1.Node)
	if !ok {
		return addition{}, fmt.Errorf("%s: it is a %s, it must be a Node", file, documents[0].name())
	}
	if node.Name == "" {
		return addition{}, fmt.Errorf("%s: metadata.name: it is missing", file)
	}
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = node.Status.Capacity
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if _, ok := node.Status.Allocatable[name]; !ok {
			return addition{},
				fmt.Errorf("%s: status.allocatable.%s: it is missing, cpu, memory and pods must be given",
					file, name)
		}
	}
	return addition{file: file, node: node, count: count}, nil
}
