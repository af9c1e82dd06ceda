package podnodeselector

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// everywhere is the key of what holds for namespaces that say nothing.
const everywhere = "clusterDefaultNodeSelector"

// Check says what is wrong with a configuration.
func Check(data []byte) error {
	_, err := parse(data)
	return err
}

// parse returns the labels by namespace. The file has no kind of its own: it is as Kubernetes takes it.
func parse(data []byte) (map[string]labels.Set, error) {
	const field = "podNodeSelectorPluginConfig"
	said := struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}{}
	if err := yaml.UnmarshalStrict(data, &said); err != nil {
		return nil, fmt.Errorf("%s: labels by namespace are wanted: %w", field, err)
	}
	selectors := map[string]labels.Set{}
	for _, namespace := range slices.Sorted(maps.Keys(said.Selectors)) {
		selected, err := labels.ConvertSelectorToLabelsMap(said.Selectors[namespace])
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", field, namespace, err)
		}
		selectors[namespace] = selected
	}
	return selectors, nil
}
