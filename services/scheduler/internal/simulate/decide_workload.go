package simulate

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
)

// hash stands for the label that distinguishes the Pods of a Deployment's new template from those of its old ones.
const hash = "simulated"

// maxPods is how many Pods the manifests may ask for together, and how many the nodes that are added: more than a mesh
// of maxNodes gets in a rollout, and few enough to be placed while the user waits.
const maxPods = 100_000

// bounded refuses more Pods than are simulated at once.
func bounded(pods []*corev1.Pod) error {
	if len(pods) <= maxPods {
		return nil
	}
	return fmt.Errorf("with it there are %d Pods, at most %d are simulated at once", len(pods), maxPods)
}

// maker makes the Pods of one object.
type maker struct {
	kind   string
	meta   metav1.ObjectMeta
	owner  metav1.OwnerReference
	labels map[string]string // more than the template's
}

func (k *maker) pods(t *corev1.PodTemplateSpec, count int32) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, count)
	for i := range count {
		pods = append(pods, k.pod(t, fmt.Sprintf("%s-%d", k.meta.Name, i)))
	}
	return pods
}

func (k *maker) pod(t *corev1.PodTemplateSpec, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.Name, p.UID = k.meta.Namespace, name, uid(k.kind, k.meta.Namespace, name)
	if len(k.labels) > 0 {
		all := maps.Clone(k.labels)
		maps.Copy(all, p.Labels)
		p.Labels = all
	}
	p.OwnerReferences = []metav1.OwnerReference{k.owner}
	return p
}

func uid(kind, namespace, name string) types.UID {
	return types.UID(fmt.Sprintf("simulated/%s/%s/%s", kind, namespace, name))
}

// expand returns the Pods that an object asks for, and the objects that come with them; false for an object that has
// no Pods.
func expand(object runtime.Object, nodes []*corev1.Node) (pods []*corev1.Pod, more []runtime.Object, ok bool,
	err error) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.UID = uid("Pod", o.Namespace, o.Name)
		return []*corev1.Pod{o}, nil, true, nil
	case *appsv1.Deployment:
		set := &appsv1.ReplicaSet{ObjectMeta: o.ObjectMeta,
			Spec: appsv1.ReplicaSetSpec{Selector: withHash(o.Spec.Selector)}}
		k := made("apps/v1", "ReplicaSet", o.ObjectMeta)
		k.labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
		pods, err = counted(k, &o.Spec.Template, o.Spec.Replicas, "spec.replicas")
		return pods, []runtime.Object{set}, true, err
	case *appsv1.ReplicaSet:
		pods, err = counted(made("apps/v1", "ReplicaSet", o.ObjectMeta), &o.Spec.Template, o.Spec.Replicas,
			"spec.replicas")
		return pods, []runtime.Object{o}, true, err
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil, nil, true, fmt.Errorf("spec.template: it is missing")
		}
		pods, err = counted(made("v1", "ReplicationController", o.ObjectMeta), o.Spec.Template, o.Spec.Replicas,
			"spec.replicas")
		return pods, []runtime.Object{o}, true, err
	case *appsv1.StatefulSet:
		pods, err = counted(made("apps/v1", "StatefulSet", o.ObjectMeta), &o.Spec.Template, o.Spec.Replicas,
			"spec.replicas")
		return pods, append(claimsOfSet(o, pods), o), true, err
	case *appsv1.DaemonSet:
		return daemonPods(o, nodes), nil, true, nil
	case *batchv1.Job:
		pods, err = jobPods(o.ObjectMeta, &o.Spec, "spec")
		return pods, nil, true, err
	case *batchv1.CronJob:
		pods, err = jobPods(o.ObjectMeta, &o.Spec.JobTemplate.Spec, "spec.jobTemplate.spec")
		return pods, nil, true, err
	}
	return nil, nil, false, nil
}

func made(apiVersion, kind string, meta metav1.ObjectMeta) *maker {
	return &maker{kind: kind, meta: meta, owner: metav1.OwnerReference{APIVersion: apiVersion, Kind: kind,
		Name:       meta.Name,
		Controller: new(true)}}
}

// counted makes as many Pods as a field says, one where it says nothing.
func counted(k *maker, t *corev1.PodTemplateSpec, count *int32, path string) ([]*corev1.Pod, error) {
	if count == nil {
		return k.pods(t, 1), nil
	}
	if *count < 0 || *count > maxPods {
		return nil, fmt.Errorf("%s: %d, it must be between 0 and %d: no more Pods are simulated at once", path, *count,
			maxPods)
	}
	return k.pods(t, *count), nil
}

func withHash(s *metav1.LabelSelector) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	if s != nil {
		out = s.DeepCopy()
	}
	if out.MatchLabels == nil {
		out.MatchLabels = map[string]string{}
	}
	out.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return out
}

// jobPods makes the Pods that run at one time.
func jobPods(meta metav1.ObjectMeta, spec *batchv1.JobSpec, path string) ([]*corev1.Pod, error) {
	count := int32(1)
	if spec.Parallelism != nil {
		count = *spec.Parallelism
	}
	if spec.Completions != nil {
		count = min(count, *spec.Completions)
	}
	return counted(made("batch/v1", "Job", meta), &spec.Template, &count, path+".parallelism")
}

// claimsOfSet gives the Pods of a StatefulSet their claims, and returns these.
func claimsOfSet(set *appsv1.StatefulSet, pods []*corev1.Pod) (claims []runtime.Object) {
	for _, p := range pods {
		for i := range set.Spec.VolumeClaimTemplates {
			c := set.Spec.VolumeClaimTemplates[i].DeepCopy()
			volume := corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name + "-" + p.Name}}}
			p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name })
			p.Spec.Volumes = append(p.Spec.Volumes, volume)
			c.Namespace, c.Name = p.Namespace, c.Name+"-"+p.Name
			claims = append(claims, c)
		}
	}
	return claims
}

// everywhere is what Pods of DaemonSets tolerate beside their own.
var everywhere = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// daemonPods makes one Pod for each of the nodes that the DaemonSet asks for.
func daemonPods(set *appsv1.DaemonSet, nodes []*corev1.Node) (pods []*corev1.Pod) {
	k := made("apps/v1", "DaemonSet", set.ObjectMeta)
	want := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: set.Spec.Template.Spec})
	for _, n := range nodes {
		p := k.pod(&set.Spec.Template, set.Name+"-"+n.Name)
		p.Spec.Tolerations = append(p.Spec.Tolerations, everywhere...)
		if p.Spec.HostNetwork {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable,
				Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		}
		if match, err := want.Match(n); err != nil || !match || tainttoleration.Repels(p.Spec.Tolerations,
			n.Spec.Taints) {
			continue
		}
		pin(&p.Spec, n.Name)
		pods = append(pods, p)
	}
	return pods
}

// pin holds a Pod to one node, in place of the terms that this node matches.
func pin(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}
}
