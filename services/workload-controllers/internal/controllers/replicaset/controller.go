// Package replicaset keeps every ReplicaSet at its number of Pods, by package replicas.
package replicaset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/replicas"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "replicaset"

// Registration describes the controller. concurrent is how many ReplicaSets it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return replicas.Registration(&replicas.Kind[*appsv1.ReplicaSet]{
		Controller: Name, EventSource: "replicaset-controller",
		GVK: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Resource: "replicasets",
		New:         func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
		Set:         func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { return set },
		WriteStatus: writeStatus,
	}, feed, concurrent)
}

func writeStatus(
	ctx context.Context, w *write.Writer, set *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus,
) (bool, error) {
	of := func(set *appsv1.ReplicaSet) *appsv1.ReplicaSetStatus { return &set.Status }
	return write.Status(ctx, w, set, status, of)
}
