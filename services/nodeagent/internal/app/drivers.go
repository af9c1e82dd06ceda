package app

import (
	"k8s.io/apimachinery/pkg/types"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/csinode"
	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// buildDrivers builds the parts that make CSI drivers serve the volumes of Pods.
func (a *agent) buildDrivers() {
	a.plugins = csiplugin.New(csiplugin.Config{Root: a.RootDir, Log: a.Log, Changed: func() {
		a.csiNode.Look()
		a.drivers.Look()
	}, Takers: map[string]csiplugin.Taker{registration.DevicePlugin: a.devices}})
	a.csiNode = csinode.New(csinode.Config{Client: a.client, Log: a.Log, Name: a.NodeName,
		Drivers: a.plugins.Identities})
	a.drivers = csivolume.Open(csivolume.Config{
		Files: a.files, Mounter: a.mounter, Objects: a.objects, Node: a.node.Current, Changed: a.node.Look,
		NodeName: a.NodeName, Boot: a.facts.Info.BootID, Log: a.Log, Events: a.events,
		Driver: func(name string) (csivolume.Driver, error) {
			driver, err := a.plugins.Driver(name)
			if err != nil {
				return nil, err // not a nil pointer in an interface
			}
			return driver, nil
		},
	})
	a.volumeStats = volumestats.New(volumestats.Config{
		Log: a.Log, Volumes: a.drivers.Standing, Abnormal: a.volumeAbnormal,
		Driver: func(name string) (volumestats.Driver, error) {
			driver, err := a.plugins.Driver(name)
			if err != nil {
				return nil, err
			}
			return driver, nil
		},
	})
}

// volumeAbnormal records that a driver says that a volume of a Pod is not in order.
func (a *agent) volumeAbnormal(uid types.UID, volume, message string) {
	for _, pod := range a.pool.Pods() {
		if pod.UID == uid {
			a.events.Record(pod, "", events.Warning("VolumeConditionAbnormal", "Volume %s: %s", volume, message))
		}
	}
}

// openDevices loads the devices that Pods hold.
func (a *agent) openDevices() (err error) {
	a.devices, err = deviceplugin.Open(deviceplugin.Config{
		Root: a.RootDir, Log: a.Log,
		Changed:  func() { a.node.Look() },
		Affected: func(uid types.UID) { a.pool.Notify(uid) },
		Returned: func(uid types.UID) { a.pool.Refresh(uid) },
		Refuse:   func(uid types.UID, why podstate.Outcome) { a.pool.Evict(uid, why) },
	})
	return err
}
