package deployment

import (
	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/kit/events"
)

// eventSource is what users see as the origin of the events.
const eventSource = "deployment-controller"

// scaled says that the size of a ReplicaSet was changed.
func scaled(name string, from, to int32) events.Event {
	direction := "up"
	if to < from {
		direction = "down"
	}
	return events.Normal("ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", direction, name, from, to)
}

func createFailed(name string, err error) events.Event {
	return events.Warning(reasonCreateError, "Failed to create new replica set %q: %v", name, err)
}

func rolledBack(deployment *appsv1.Deployment, revision int64) events.Event {
	return events.Normal("DeploymentRollback", "Rolled back deployment %q to revision %d", deployment.Name, revision)
}

func sameTemplate(deployment *appsv1.Deployment) events.Event {
	return events.Warning("DeploymentRollbackTemplateUnchanged",
		"The rollback revision contains the same template as current deployment %q", deployment.Name)
}

func noLastRevision() events.Event {
	return events.Warning("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
}

func noSuchRevision() events.Event {
	return events.Warning("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
}
