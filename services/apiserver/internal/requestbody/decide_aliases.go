package requestbody

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// checkAliases refuses YAML whose aliases stand for more than may be sent without them: the library writes each of them
// out, and a few thousand of one long text are gigabytes.
func checkAliases(body []byte, maxBytes int64) error {
	if !bytes.ContainsRune(body, '*') {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(body, &document); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("reading the body as YAML: %v", err))
	}
	if n := (expansion{known: map[*yaml.Node]int64{}, most: maxBytes}).of(&document); n > maxBytes {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"limit is %d, and the body has more once its YAML aliases are written out", maxBytes))
	}
	return nil
}

// expansion says how many bytes YAML has at least without aliases, or that they are more than the most.
type expansion struct {
	known map[*yaml.Node]int64
	most  int64
}

func (e expansion) of(node *yaml.Node) int64 {
	if n, is := e.known[node]; is {
		return n
	}
	e.known[node] = e.most + 1 // what has an alias of itself inside has no end
	n := int64(len(node.Value)) + 1
	if node.Kind == yaml.AliasNode {
		n = e.of(node.Alias)
	}
	for _, inner := range node.Content {
		if n = min(n+e.of(inner), e.most+1); n > e.most {
			break
		}
	}
	e.known[node] = n
	return n
}
