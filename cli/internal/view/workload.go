package view

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// Kind is a kind of object that is explained.
type Kind struct {
	// Name is the kind as the API writes it; plural and group name its resource, short is what users may write, too.
	Name, plural, group, short string
	// cluster is set for a kind whose objects have no namespace; daemons are asked, in this order.
	cluster bool
	daemons []string
	get     func(ctx context.Context, client kubernetes.Interface, namespace, name string) (metav1.Object, error)
}

// getter reads objects of one kind; the typed clients are getters.
type getter[O metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (O, error)
}

// kindOf is a kind that controllers explain. Its resource is a plural, and the group behind it where that has a name.
func kindOf[O metav1.Object](name, resource, short string, of func(kubernetes.Interface, string) getter[O]) Kind {
	plural, group, _ := strings.Cut(resource, ".")
	return Kind{Name: name, plural: plural, group: group, short: short, daemons: []string{plan.WorkloadControllers},
		get: func(ctx context.Context, client kubernetes.Interface, namespace, name string) (metav1.Object, error) {
			return of(client, namespace).Get(ctx, name, metav1.GetOptions{})
		}}
}

// by is the kind with the daemons that are asked about it.
func (k Kind) by(daemons ...string) Kind {
	k.daemons = daemons
	return k
}

// is reports whether a kind is that of the resource.
func (k Kind) is(group, plural string) bool { return k.group == group && k.plural == plural }

// asked are the daemons that are asked about an object: about a Node, its own nodeagent too.
func (k Kind) asked(name string) []string {
	if k.is("", "nodes") {
		return append([]string{plan.NodeagentProcess(name)}, k.daemons...)
	}
	return k.daemons
}

// ofCluster is the kind whose objects have no namespace.
func (k Kind) ofCluster() Kind {
	k.cluster = true
	return k
}

// kinds are the kinds that daemons explain, apart from what keeps an object.
var kinds = []Kind{
	kindOf("Pod", "pods", "po", func(c kubernetes.Interface, ns string) getter[*corev1.Pod] {
		return c.CoreV1().Pods(ns)
	}),
	kindOf(
		"Deployment",
		"deployments.apps",
		"deploy",
		func(c kubernetes.Interface, ns string) getter[*appsv1.Deployment] {
			return c.AppsV1().Deployments(ns)
		},
	),
	kindOf("ReplicaSet", "replicasets.apps", "rs", func(c kubernetes.Interface, ns string) getter[*appsv1.ReplicaSet] {
		return c.AppsV1().ReplicaSets(ns)
	}),
	kindOf(
		"StatefulSet",
		"statefulsets.apps",
		"sts",
		func(c kubernetes.Interface, ns string) getter[*appsv1.StatefulSet] {
			return c.AppsV1().StatefulSets(ns)
		},
	),
	kindOf("DaemonSet", "daemonsets.apps", "ds", func(c kubernetes.Interface, ns string) getter[*appsv1.DaemonSet] {
		return c.AppsV1().DaemonSets(ns)
	}),
	kindOf("Job", "jobs.batch", "job", func(c kubernetes.Interface, ns string) getter[*batchv1.Job] {
		return c.BatchV1().Jobs(ns)
	}).by(plan.WorkloadControllers, plan.PodGC),
	kindOf("CronJob", "cronjobs.batch", "cj", func(c kubernetes.Interface, ns string) getter[*batchv1.CronJob] {
		return c.BatchV1().CronJobs(ns)
	}),
	kindOf("ReplicationController", "replicationcontrollers", "rc",
		func(c kubernetes.Interface, ns string) getter[*corev1.ReplicationController] {
			return c.CoreV1().ReplicationControllers(ns)
		}),
	kindOf("PodDisruptionBudget", "poddisruptionbudgets.policy", "pdb",
		func(c kubernetes.Interface, ns string) getter[*policyv1.PodDisruptionBudget] {
			return c.PolicyV1().PodDisruptionBudgets(ns)
		}),
	kindOf("HorizontalPodAutoscaler", "horizontalpodautoscalers.autoscaling", "hpa",
		func(c kubernetes.Interface, ns string) getter[*autoscalingv2.HorizontalPodAutoscaler] {
			return c.AutoscalingV2().HorizontalPodAutoscalers(ns)
		}),
	kindOf("ResourceQuota", "resourcequotas", "quota",
		func(c kubernetes.Interface, ns string) getter[*corev1.ResourceQuota] {
			return c.CoreV1().ResourceQuotas(ns)
		}),
	kindOf("PersistentVolumeClaim", "persistentvolumeclaims", "pvc",
		func(c kubernetes.Interface, ns string) getter[*corev1.PersistentVolumeClaim] {
			return c.CoreV1().PersistentVolumeClaims(ns)
		}).by(plan.WorkloadControllers, plan.PodGC),
	kindOf("PersistentVolume", "persistentvolumes", "pv",
		func(c kubernetes.Interface, _ string) getter[*corev1.PersistentVolume] {
			return c.CoreV1().PersistentVolumes()
		}).by(plan.WorkloadControllers, plan.PodGC).ofCluster(),
	kindOf("PodGroup", "podgroups.scheduling.k8s.io", "podgroup",
		func(c kubernetes.Interface, ns string) getter[*schedulingv1beta1.PodGroup] {
			return c.SchedulingV1beta1().PodGroups(ns)
		}).by(plan.Scheduler, plan.PodGC),
	kindOf("Service", "services", "svc", func(c kubernetes.Interface, ns string) getter[*corev1.Service] {
		return c.CoreV1().Services(ns)
	}),
	kindOf("Endpoints", "endpoints", "ep", func(c kubernetes.Interface, ns string) getter[*corev1.Endpoints] {
		return c.CoreV1().Endpoints(ns)
	}),
	kindOf("EndpointSlice", "endpointslices.discovery.k8s.io", "endpointslice",
		func(c kubernetes.Interface, ns string) getter[*discoveryv1.EndpointSlice] {
			return c.DiscoveryV1().EndpointSlices(ns)
		}),
	kindOf("ServiceAccount", "serviceaccounts", "sa",
		func(c kubernetes.Interface, ns string) getter[*corev1.ServiceAccount] {
			return c.CoreV1().ServiceAccounts(ns)
		}),
	kindOf("ServiceCIDR", "servicecidrs.networking.k8s.io", "servicecidr",
		func(c kubernetes.Interface, _ string) getter[*networkingv1.ServiceCIDR] {
			return c.NetworkingV1().ServiceCIDRs()
		}).ofCluster(),
	kindOf("CertificateSigningRequest", "certificatesigningrequests.certificates.k8s.io", "csr",
		func(c kubernetes.Interface, _ string) getter[*certificatesv1.CertificateSigningRequest] {
			return c.CertificatesV1().CertificateSigningRequests()
		}).ofCluster(),
	kindOf("ClusterTrustBundle", "clustertrustbundles.certificates.k8s.io", "clustertrustbundle",
		func(c kubernetes.Interface, _ string) getter[*certificatesv1.ClusterTrustBundle] {
			return c.CertificatesV1().ClusterTrustBundles()
		}).ofCluster(),
	kindOf("Node", "nodes", "no", func(c kubernetes.Interface, _ string) getter[*corev1.Node] {
		return c.CoreV1().Nodes()
	}).by(plan.WorkloadControllers, plan.PodGC).ofCluster(),
	kindOf("Namespace", "namespaces", "ns", func(c kubernetes.Interface, _ string) getter[*corev1.Namespace] {
		return c.CoreV1().Namespaces()
	}).by(plan.WorkloadControllers, plan.PodGC).ofCluster(),
}

// KindNames are the kinds that daemons explain beside what keeps an object, as users write them.
func KindNames() []string {
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, strings.ToLower(kind.Name))
	}
	return names
}

// Writer prints what is known of an object.
type Writer interface{ Write(out io.Writer) }

// Explain explains the state of an object. The word for the kind is its name, its plural or its short name; every
// kind that the API serves is allowed.
func Explain(ctx context.Context, m *mesh.Mesh, word, namespace, name string) (Writer, error) {
	kind, known := find(word)
	if !known {
		client, err := m.Client()
		if err != nil {
			return nil, err
		}
		if kind, err = served(ctx, client.Discovery(), word); err != nil {
			return nil, err
		}
	}
	switch {
	case kind.is("", "pods"):
		return ExplainPod(ctx, m, namespace, name)
	case kind.is("", "services"):
		return explainService(ctx, m, kind, namespace, name)
	}
	return explainWorkload(ctx, m, kind, namespace, name)
}

// Workload is what is known of one object.
type Workload struct {
	Kind   string
	Object metav1.Object
	Events []corev1.Event
	Views  []DaemonView
}

// explainWorkload asks the API and the object's controllers.
func explainWorkload(ctx context.Context, m *mesh.Mesh, kind Kind, namespace, name string) (Workload, error) {
	client, err := m.Client()
	if err != nil {
		return Workload{}, err
	}
	if kind.cluster {
		namespace = ""
	}
	object, err := kind.get(ctx, client, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return Workload{}, missing(ctx, client, kind.Name, namespace, name)
	case err != nil:
		return Workload{}, fmt.Errorf("reading the %s: %w", kind.Name, err)
	}
	w := Workload{Kind: kind.Name, Object: object}
	if w.Events, err = eventsOf(ctx, client, object); err != nil {
		return w, err
	}
	for _, daemon := range kind.asked(name) {
		w.Views = append(w.Views, ask(ctx, m, daemon, &introspectionv1.ObjectReference{Kind: kind.Name,
			Namespace: namespace, Name: name}, "has not seen it yet, or does not run its controller"))
	}
	w.Views = append(w.Views, askOwners(ctx, m, object))
	return w, nil
}

// Write prints what is known.
func (w Workload) Write(out io.Writer) {
	state := "made at " + w.Object.GetCreationTimestamp().Local().Format(time.DateTime)
	if going := w.Object.GetDeletionTimestamp(); going != nil {
		state = "being deleted since " + going.Local().Format(time.DateTime)
	}
	name := w.Object.GetName()
	if namespace := w.Object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	fmt.Fprintf(out, "%s %s: %s\n", w.Kind, name, state)
	writeViews(out, w.Views)
	writeEvents(out, w.Events)
}

// CheckKind says what is wrong with a word for a kind, as far as that is seen without asking the API.
func CheckKind(word string) error {
	if wrong := validation.IsDNS1123Subdomain(strings.ToLower(word)); len(wrong) > 0 {
		return fmt.Errorf("%q is no kind: write one as kubectl takes it, such as pod, deploy or deployments.apps", word)
	}
	return nil
}

// find returns the kind that a user means, if it is one that daemons explain.
func find(word string) (Kind, bool) {
	word = strings.ToLower(word)
	for _, kind := range kinds {
		words := []string{strings.ToLower(kind.Name), kind.plural, kind.plural + "." + kind.group, kind.short}
		if slices.Contains(words, word) {
			return kind, true
		}
	}
	return Kind{}, false
}
