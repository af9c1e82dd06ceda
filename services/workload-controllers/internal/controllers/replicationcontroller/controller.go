// Package replicationcontroller keeps every ReplicationController at its number of Pods, by package replicas.
//
//	controller.go  what the kind is to package replicas
//	convert.go     a ReplicationController as a ReplicaSet, and the status back (pure)
package replicationcontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/replicas"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "replicationcontroller"

// Registration describes the controller. concurrent is how many ReplicationControllers it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return replicas.Registration(&replicas.Kind[*corev1.ReplicationController]{
		Controller: Name, EventSource: "replication-controller",
		GVK: corev1.SchemeGroupVersion.WithKind("ReplicationController"), Resource: "replicationcontrollers",
		New: func() *corev1.ReplicationController { return &corev1.ReplicationController{} },
		Set: replicaSetOf, LacksTerminating: true, WriteStatus: writeStatus,
	}, feed, concurrent)
}

func writeStatus(
	ctx context.Context, w *write.Writer, rc *corev1.ReplicationController, status appsv1.ReplicaSetStatus,
) (bool, error) {
	of := func(rc *corev1.ReplicationController) *corev1.ReplicationControllerStatus { return &rc.Status }
	return write.Status(ctx, w, rc, statusOf(status), of)
}
