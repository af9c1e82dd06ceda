// Package controllers lists all controllers of this service.
package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/controllers/attachdetach"
	"keelson.dev/services/workload-controllers/internal/controllers/cronjob"
	"keelson.dev/services/workload-controllers/internal/controllers/csrapproving"
	"keelson.dev/services/workload-controllers/internal/controllers/csrcleaner"
	"keelson.dev/services/workload-controllers/internal/controllers/csrsigning"
	"keelson.dev/services/workload-controllers/internal/controllers/daemonset"
	"keelson.dev/services/workload-controllers/internal/controllers/deployment"
	"keelson.dev/services/workload-controllers/internal/controllers/disruption"
	"keelson.dev/services/workload-controllers/internal/controllers/endpoint"
	"keelson.dev/services/workload-controllers/internal/controllers/endpointslice"
	"keelson.dev/services/workload-controllers/internal/controllers/endpointslicemirroring"
	"keelson.dev/services/workload-controllers/internal/controllers/ephemeralvolume"
	"keelson.dev/services/workload-controllers/internal/controllers/horizontalpodautoscaler"
	"keelson.dev/services/workload-controllers/internal/controllers/job"
	"keelson.dev/services/workload-controllers/internal/controllers/nodeipam"
	"keelson.dev/services/workload-controllers/internal/controllers/persistentvolume"
	"keelson.dev/services/workload-controllers/internal/controllers/replicaset"
	"keelson.dev/services/workload-controllers/internal/controllers/replicationcontroller"
	"keelson.dev/services/workload-controllers/internal/controllers/resourceclaim"
	"keelson.dev/services/workload-controllers/internal/controllers/resourcequota"
	"keelson.dev/services/workload-controllers/internal/controllers/rootca"
	"keelson.dev/services/workload-controllers/internal/controllers/serviceaccount"
	"keelson.dev/services/workload-controllers/internal/controllers/servicecidr"
	"keelson.dev/services/workload-controllers/internal/controllers/statefulset"
	"keelson.dev/services/workload-controllers/internal/controllers/trustbundle"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/signers"
)

// Options are what the controllers are built with.
type Options struct {
	// RootCA is the PEM bundle that rootca and trustbundle publish; without it these controllers do not exist.
	RootCA        []byte
	Endpoint      endpoint.Options
	EndpointSlice endpointslice.Options
	Mirroring     endpointslicemirroring.Options
	// Concurrent is how many objects each controller works on at once.
	Concurrent int
	// Volumes answers questions about PersistentVolumes; nil if no one asks.
	Volumes *persistentvolume.Volumes
	// Autoscaling are the settings of horizontalpodautoscaler.
	Autoscaling horizontalpodautoscaler.Settings
	// CronJob are the settings of cronjob.
	CronJob cronjob.Settings
	// AttachDetach are the settings of attachdetach.
	AttachDetach attachdetach.Settings
	// NodeIPAM are the settings of nodeipam; without a range this controller does not exist.
	NodeIPAM nodeipam.Settings
	// Signing is the authority of csrsigning; without it this controller does not exist.
	Signing signers.Files
}

// All returns every controller, sorted by name.
func All(o Options) []controller.Registration {
	feed := podfeed.New()
	all := []controller.Registration{
		attachdetach.Registration(o.AttachDetach, o.Concurrent),
		cronjob.Registration(o.CronJob, o.Concurrent),
		csrapproving.Registration(o.Concurrent),
		csrcleaner.Registration(o.Concurrent),
		daemonset.Registration(feed, o.Concurrent),
		deployment.Registration(feed, o.Concurrent),
		disruption.Registration(feed, o.Concurrent),
		endpoint.Registration(feed, o.Endpoint, o.Concurrent),
		endpointslice.Registration(feed, o.EndpointSlice, o.Concurrent),
		endpointslicemirroring.Registration(o.Mirroring, o.Concurrent),
		ephemeralvolume.Registration(o.Concurrent),
		horizontalpodautoscaler.Registration(feed, o.Autoscaling, o.Concurrent),
		job.Registration(feed, o.Concurrent),
		persistentvolume.Registration(cmp.Or(o.Volumes, &persistentvolume.Volumes{}), o.Concurrent),
		replicaset.Registration(feed, o.Concurrent),
		replicationcontroller.Registration(feed, o.Concurrent),
		resourceclaim.Registration(o.Concurrent),
		resourcequota.Registration(feed, o.Concurrent),
		serviceaccount.Registration(o.Concurrent),
		servicecidr.Registration(o.Concurrent),
		statefulset.Registration(feed, o.Concurrent),
	}
	if len(o.RootCA) > 0 {
		all = append(all, rootca.Registration(o.RootCA, o.Concurrent), trustbundle.Registration(o.RootCA))
	}
	if len(o.NodeIPAM.ClusterCIDRs) > 0 {
		all = append(all, nodeipam.Registration(o.NodeIPAM))
	}
	if o.Signing.Named() {
		all = append(all, csrsigning.Registration(o.Signing, o.Concurrent))
	}
	slices.SortFunc(all, func(a, b controller.Registration) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Whole returns options with which every controller exists. They serve to list the controllers, not to run them.
func Whole() Options {
	return Options{RootCA: []byte("any"), NodeIPAM: nodeipam.Settings{ClusterCIDRs: []string{"10.244.0.0/16"}},
		Signing: signers.Files{Certificate: "any", Key: "any"}}
}

// Names returns the names of all possible controllers, sorted.
func Names() []string {
	var names []string
	for _, r := range All(Whole()) {
		names = append(names, r.Name)
	}
	return names
}

// Select returns the controllers that a list of names selects: "*" selects all, "-name" excludes one.
func Select(all []controller.Registration, names []string) []controller.Registration {
	wanted := slices.Contains(names, "*")
	return slices.DeleteFunc(slices.Clone(all), func(r controller.Registration) bool {
		return slices.Contains(names, "-"+r.Name) || !wanted && !slices.Contains(names, r.Name)
	})
}

// Validate returns an error for a name that belongs to no controller.
func Validate(names []string) error {
	for _, name := range names {
		if name != "*" && !slices.Contains(Names(), strings.TrimPrefix(name, "-")) {
			return fmt.Errorf(
				"%q is no controller, only *, %s, and each of these with - in front to leave it out are allowed",
				name, strings.Join(Names(), ", "))
		}
	}
	return nil
}
