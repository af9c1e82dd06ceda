// Package nodepods finds the Pods of a node in the cache that all collectors share.
package nodepods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// field is the name of the index.
const field = "spec.nodeName"

// Index makes the cache keep Pods by node. It may be called once per cache.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, field, func(object client.Object) []string {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	})
}

// On returns the Pods that are bound to the node. They are shared and not to be changed.
func On(ctx context.Context, cached client.Reader, node string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := cached.List(ctx, &list, client.MatchingFields{field: node}); err != nil {
		return nil, fmt.Errorf("listing the Pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}
