package persistentvolume

import (
	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "persistentvolume-controller"

func waitForConsumer() events.Event {
	return events.Normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
}

func noVolume() events.Event {
	return events.Normal("FailedBinding",
		"no persistent volumes available for this claim and no storage class is set")
}

func volumeTaken(name string) events.Event {
	return events.Warning("FailedBinding", "volume %q already bound to a different claim.", name)
}

func volumeMismatch(name, why string) events.Event {
	return events.Warning("VolumeMismatch", "Cannot bind to requested volume %q: %s", name, why)
}

func externalProvisioning(provisioner string) events.Event {
	return events.Normal("ExternalProvisioning", "Waiting for a volume to be created either by the external "+
		"provisioner '%s' or manually by the system administrator. If volume creation is delayed, please verify that "+
		"the provisioner is running and correctly registered.", provisioner)
}

func provisioningFailed(format string, args ...any) events.Event {
	return events.Warning("ProvisioningFailed", format, args...)
}

func provisioned(name string) events.Event {
	return events.Normal("ProvisioningSucceeded", "Successfully provisioned volume %s", name)
}

func claimLost(what string) events.Event {
	return events.Warning("ClaimLost", "Bound claim has lost %s. Data on the volume is lost!", what)
}

func claimMisbound() events.Event {
	return events.Warning("ClaimMisbound",
		"Two claims are bound to the same volume, this one is bound incorrectly")
}

func recycleFailed() events.Event {
	return events.Warning("VolumeFailedRecycle", "%s", noRecycling)
}

func deleteFailed() events.Event {
	return events.Warning("VolumeFailedDelete", "%s", noDeletion)
}

func nodeGone(node, finalizer string) events.Event {
	return events.Normal("NodeGone", "Node %s is gone and the folder with it: the finalizer %s is taken off", node,
		finalizer)
}

// The reasons why a released volume stays as it is.
const (
	noRecycling = "the reclaim policy Recycle is not supported: empty the volume and clear spec.claimRef, or set " +
		"spec.persistentVolumeReclaimPolicy to Retain"
	noDeletion = "nobody is known who deletes such a volume: delete it by hand, or set " +
		"spec.persistentVolumeReclaimPolicy to Retain"
)
