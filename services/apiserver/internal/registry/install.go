// Package registry is the list of all resources that the apiserver serves.
package registry

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"

	"keelson.dev/services/apiserver/internal/authn"
	"keelson.dev/services/apiserver/internal/authz"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/mutatingadmissionpolicy"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/mutatingadmissionpolicybinding"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/mutatingwebhookconfiguration"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/paramrights"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/validatingadmissionpolicy"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/validatingadmissionpolicybinding"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/validatingwebhookconfiguration"
	"keelson.dev/services/apiserver/internal/registry/apiregistration/apiservice"
	"keelson.dev/services/apiserver/internal/registry/apps/controllerrevision"
	"keelson.dev/services/apiserver/internal/registry/apps/daemonset"
	"keelson.dev/services/apiserver/internal/registry/apps/deployment"
	"keelson.dev/services/apiserver/internal/registry/apps/replicaset"
	"keelson.dev/services/apiserver/internal/registry/apps/statefulset"
	"keelson.dev/services/apiserver/internal/registry/authentication/tokenreview"
	"keelson.dev/services/apiserver/internal/registry/authorization/accessreview"
	"keelson.dev/services/apiserver/internal/registry/autoscaling/horizontalpodautoscaler"
	"keelson.dev/services/apiserver/internal/registry/batch/cronjob"
	"keelson.dev/services/apiserver/internal/registry/batch/job"
	"keelson.dev/services/apiserver/internal/registry/certificates/certificatesigningrequest"
	"keelson.dev/services/apiserver/internal/registry/certificates/clustertrustbundle"
	"keelson.dev/services/apiserver/internal/registry/coordination/lease"
	"keelson.dev/services/apiserver/internal/registry/core/componentstatus"
	"keelson.dev/services/apiserver/internal/registry/core/configmap"
	"keelson.dev/services/apiserver/internal/registry/core/endpoints"
	"keelson.dev/services/apiserver/internal/registry/core/event"
	"keelson.dev/services/apiserver/internal/registry/core/limitrange"
	"keelson.dev/services/apiserver/internal/registry/core/namespace/deletion"
	"keelson.dev/services/apiserver/internal/registry/core/node/proxy"
	"keelson.dev/services/apiserver/internal/registry/core/persistentvolume"
	"keelson.dev/services/apiserver/internal/registry/core/persistentvolumeclaim"
	"keelson.dev/services/apiserver/internal/registry/core/pod"
	"keelson.dev/services/apiserver/internal/registry/core/podtemplate"
	"keelson.dev/services/apiserver/internal/registry/core/replicationcontroller"
	"keelson.dev/services/apiserver/internal/registry/core/resourcequota"
	"keelson.dev/services/apiserver/internal/registry/core/secret"
	"keelson.dev/services/apiserver/internal/registry/core/service"
	"keelson.dev/services/apiserver/internal/registry/core/serviceaccount/tokenrequest"
	"keelson.dev/services/apiserver/internal/registry/discovery/endpointslice"
	"keelson.dev/services/apiserver/internal/registry/flowcontrol/flowschema"
	"keelson.dev/services/apiserver/internal/registry/flowcontrol/prioritylevelconfiguration"
	"keelson.dev/services/apiserver/internal/registry/metrics"
	"keelson.dev/services/apiserver/internal/registry/networking/ingress"
	"keelson.dev/services/apiserver/internal/registry/networking/ingressclass"
	"keelson.dev/services/apiserver/internal/registry/networking/ipaddress"
	"keelson.dev/services/apiserver/internal/registry/networking/networkpolicy"
	"keelson.dev/services/apiserver/internal/registry/networking/servicecidr"
	"keelson.dev/services/apiserver/internal/registry/node/runtimeclass"
	"keelson.dev/services/apiserver/internal/registry/policy/disruptions"
	"keelson.dev/services/apiserver/internal/registry/rbac/clusterrole"
	"keelson.dev/services/apiserver/internal/registry/rbac/clusterrolebinding"
	"keelson.dev/services/apiserver/internal/registry/rbac/escalation"
	"keelson.dev/services/apiserver/internal/registry/rbac/role"
	"keelson.dev/services/apiserver/internal/registry/rbac/rolebinding"
	"keelson.dev/services/apiserver/internal/registry/resource/device"
	"keelson.dev/services/apiserver/internal/registry/resource/deviceclass"
	"keelson.dev/services/apiserver/internal/registry/resource/resourceclaim"
	"keelson.dev/services/apiserver/internal/registry/resource/resourceclaimtemplate"
	"keelson.dev/services/apiserver/internal/registry/resource/resourceslice"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/scheduling/podgroup"
	"keelson.dev/services/apiserver/internal/registry/scheduling/priorityclass"
	"keelson.dev/services/apiserver/internal/registry/scheduling/workload"
	"keelson.dev/services/apiserver/internal/registry/storage/csidriver"
	"keelson.dev/services/apiserver/internal/registry/storage/csinode"
	"keelson.dev/services/apiserver/internal/registry/storage/csistoragecapacity"
	"keelson.dev/services/apiserver/internal/registry/storage/storageclass"
	"keelson.dev/services/apiserver/internal/registry/storage/volumeattachment"
	"keelson.dev/services/apiserver/internal/registry/storage/volumeattributesclass"
)

// Config is what single resources need beyond a store.
type Config struct {
	Authenticators authn.Authenticators
	Audiences      []string
	Authorizer     *authz.Authorizer
	// Params say who may use what as parameters of admission policies.
	Params paramrights.Rights
	// Tokens issues service-account tokens, Nodes leads to the nodeagents.
	Tokens tokenrequest.Config
	Nodes  *nodeproxy.Nodes
	// Node finds the node that a Pod is to be bound to.
	Node nodeproxy.Lookup
	// Namespaces say where users may ask for devices as administrators.
	Namespaces device.Namespaces
	// Objects are the Pods and nodes of which metrics.k8s.io tells what they use.
	Objects metrics.Objects
	// Leases are by which the daemons tell that they work, Store tells why the store does not answer.
	Leases componentstatus.Leases
	Store  func() error
	// Transport reaches what users run in Pods and on nodes.
	Transport http.RoundTripper
	// Services are given addresses and ports from here.
	Services service.Config
	// EventTTL is how long Events are kept.
	EventTTL time.Duration
}

// Group is one API group and what it serves. Its versions are those that the scheme knows.
type Group struct {
	Name    string
	Entries []rest.Entry
}

// Groups lists every group and what it serves. For the mere list of
// groups and types an empty Config will do.
func Groups(c Config) []Group {
	events, newerEvents := rest.ServeInTwoGroups(event.KeptFor(c.EventTTL), eventsv1.GroupName, event.NewerStrategy)
	budgets := &disruptions.Budgets{}
	return []Group{
		{corev1.GroupName, []rest.Entry{
			componentstatus.Entry(c.Leases, c.Store),
			rest.Serve(configmap.Resource),
			rest.Serve(endpoints.Resource),
			events,
			rest.Serve(limitrange.Resource),
			deletion.Namespace(),
			proxy.Node(c.Nodes, c.Transport),
			rest.Serve(persistentvolume.Resource),
			rest.Serve(persistentvolumeclaim.Resource),
			pod.Entry(pod.Config{Nodes: c.Nodes, Node: c.Node, Budgets: budgets, Transport: c.Transport,
				Authorizer: c.Authorizer}),
			rest.Serve(podtemplate.Resource),
			rest.Serve(replicationcontroller.Resource),
			rest.Serve(resourcequota.Resource),
			rest.Serve(secret.Resource),
			service.Entry(c.Services),
			tokenrequest.ServiceAccount(c.Tokens),
		}},
		{admissionregistrationv1.GroupName, []rest.Entry{
			mutatingadmissionpolicy.Entry(c.Params),
			mutatingadmissionpolicybinding.Entry(c.Params),
			rest.Serve(mutatingwebhookconfiguration.Resource),
			validatingadmissionpolicy.Entry(c.Params),
			validatingadmissionpolicybinding.Entry(c.Params),
			rest.Serve(validatingwebhookconfiguration.Resource),
		}},
		{apiregistrationv1.GroupName, []rest.Entry{rest.Serve(apiservice.Resource)}},
		{appsv1.GroupName, []rest.Entry{
			rest.Serve(controllerrevision.Resource),
			rest.Serve(daemonset.Resource),
			rest.Serve(deployment.Resource),
			rest.Serve(replicaset.Resource),
			rest.Serve(statefulset.Resource),
		}},
		{authenticationv1.GroupName, []rest.Entry{tokenreview.Entry(c.Authenticators, c.Audiences)}},
		{authorizationv1.GroupName, []rest.Entry{accessreview.Entry(c.Authorizer)}},
		{autoscalingv2.GroupName, []rest.Entry{rest.Serve(horizontalpodautoscaler.Resource)}},
		{batchv1.GroupName, []rest.Entry{rest.Serve(cronjob.Resource), rest.Serve(job.Resource)}},
		{certificatesv1.GroupName, []rest.Entry{
			rest.Serve(certificatesigningrequest.Resource),
			rest.Serve(clustertrustbundle.Resource),
		}},
		{coordinationv1.GroupName, []rest.Entry{rest.Serve(lease.Resource)}},
		{discoveryv1.GroupName, []rest.Entry{rest.Serve(endpointslice.Resource)}},
		{eventsv1.GroupName, []rest.Entry{newerEvents}},
		{flowcontrolv1.GroupName, []rest.Entry{
			rest.Serve(flowschema.Resource),
			rest.Serve(prioritylevelconfiguration.Resource),
		}},
		{metricsv1.GroupName, metrics.Entries(c.Objects, c.Nodes)},
		{networkingv1.GroupName, []rest.Entry{
			rest.Serve(ingress.Resource),
			rest.Serve(ingressclass.Resource),
			rest.ServeWrapped(ipaddress.Resource, c.Services.ClusterIPs.OpenAddresses),
			rest.Serve(networkpolicy.Resource),
			rest.ServeWrapped(servicecidr.Resource, c.Services.ClusterIPs.OpenRanges),
		}},
		{nodev1.GroupName, []rest.Entry{rest.Serve(runtimeclass.Resource)}},
		{policyv1.GroupName, []rest.Entry{disruptions.PodDisruptionBudget(budgets)}},
		{rbacv1.GroupName, roleEntries(c.Authorizer)},
		{resourcev1.GroupName, deviceEntries(c)},
		{schedulingv1.GroupName, []rest.Entry{
			rest.Serve(podgroup.Resource),
			rest.Serve(priorityclass.Resource),
			rest.Serve(workload.Resource),
		}},
		{storagev1.GroupName, []rest.Entry{
			rest.Serve(csidriver.Resource),
			rest.Serve(csinode.Resource),
			rest.Serve(csistoragecapacity.Resource),
			rest.Serve(storageclass.Resource),
			rest.Serve(volumeattachment.Resource),
			rest.Serve(volumeattributesclass.Resource),
		}},
	}
}

// roleEntries are the roles and bindings. A user cannot write one that grants more than the user has.
func roleEntries(authority escalation.Authority) []rest.Entry {
	return []rest.Entry{
		escalation.GuardRole(clusterrole.Resource, authority, clusterrole.RulesOf, clusterrole.GrantsTheSame),
		escalation.GuardBinding(clusterrolebinding.Resource, authority, clusterrolebinding.Parts),
		escalation.GuardRole(role.Resource, authority, role.RulesOf, role.GrantsTheSame),
		escalation.GuardBinding(rolebinding.Resource, authority, rolebinding.Parts),
	}
}

// deviceEntries are the kinds of claims of devices.
func deviceEntries(c Config) []rest.Entry {
	return []rest.Entry{
		rest.Serve(deviceclass.Resource),
		resourceclaim.Entry(resourceclaim.Config{Namespaces: c.Namespaces, Authorizer: c.Authorizer}),
		resourceclaimtemplate.Entry(c.Namespaces),
		rest.Serve(resourceslice.Resource),
	}
}

// AddToScheme registers what the entries of all groups add to the scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, group := range Groups(Config{}) {
		for _, entry := range group.Entries {
			if err := entry.AddToScheme(scheme); err != nil {
				return fmt.Errorf("registering the group %q: %w", group.Name, err)
			}
		}
	}
	return nil
}

// Versions are the group's versions, the one that clients prefer first.
func (g Group) Versions(scheme *runtime.Scheme) []schema.GroupVersion {
	return scheme.PrioritizedVersionsForGroup(g.Name)
}

// Storages opens the stores of the group's entries; the keys are paths such as "pods/status".
func (g Group) Storages(o rest.Options) (map[string]genericrest.Storage, error) {
	all := map[string]genericrest.Storage{}
	for _, entry := range g.Entries {
		storages, err := entry.Storages(o)
		if err != nil {
			return nil, fmt.Errorf("installing the group %q: %w", g.Name, err)
		}
		maps.Copy(all, storages)
	}
	return all, nil
}

// ServedIn are those of the storages that a version serves: the resources whose kind it has, with their subresources.
func ServedIn(
	version schema.GroupVersion, scheme *runtime.Scheme, storages map[string]genericrest.Storage,
) (map[string]genericrest.Storage, error) {
	served := map[string]genericrest.Storage{}
	for path, storage := range storages {
		resource, _, _ := strings.Cut(path, "/")
		kinds, _, err := scheme.ObjectKinds(storages[resource].New())
		if err != nil {
			return nil, fmt.Errorf("serving %s: %w", path, err)
		}
		if scheme.Recognizes(version.WithKind(kinds[0].Kind)) {
			served[path] = storage
		}
	}
	return served, nil
}
