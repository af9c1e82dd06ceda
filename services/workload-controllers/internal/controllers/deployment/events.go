package deployment

import (
	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// eventSource is the source that users see on the events.
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

func rolledBack(deployment *appsv1.Deployment, number int64) events.Event {
	return events.Normal("DeploymentRollback", "Rolled back deployment %q to revision %d", deployment.Name, number)
}

// failedBack says why the Deployment runs another template than it was given.
func failedBack(failed, target *appsv1.ReplicaSet) events.Event {
	return events.Warning("RolledBackOnFailure",
		"ReplicaSet %q of revision %d has timed out progressing: rolled back to "+
			"revision %d, the last complete one, as the annotation %s asks", failed.Name, revision.Of(failed),
		revision.Of(target), revision.OnFailureAnnotation)
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
