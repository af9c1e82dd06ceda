package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
)

// question is what is asked of a mesh.
type question struct {
	documents                  []document
	namespace                  string
	withoutNodes, withoutZones []string
	added                      []addition
}

// addition is nodes that there are more.
type addition struct {
	file  string
	node  *corev1.Node
	count int
}

// answer says what the scheduler would do with a mesh of these objects. An error is about the question.
func answer(objects []runtime.Object, q question, settings config.Config) (Report, error) {
	m, err := newMesh(objects)
	if err != nil {
		return Report{}, fmt.Errorf("--snapshot: %w", err)
	}
	gone, err := q.gone(m)
	if err != nil {
		return Report{}, err
	}
	again, lost := m.lose(gone)
	requests := []request{{FromLostNode, again}}
	for _, a := range q.added {
		pods, err := m.gain(a.node, a.count)
		if err != nil {
			return Report{}, fmt.Errorf("--add-node: %s: %w", a.file, err)
		}
		requests = append(requests, request{FromNewNode, pods})
	}
	waiting := request{from: FromMesh}
	for _, p := range m.pods {
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
			waiting.pods = append(waiting.pods, p)
		}
	}
	wanted, ignored, err := q.place(m)
	if err != nil {
		return Report{}, err
	}
	requests = append(requests, waiting, request{FromManifest, wanted})
	var pending []*corev1.Pod
	for _, a := range requests {
		pending = append(pending, a.pods...)
	}
	if err := m.admitAll(pending); err != nil {
		return Report{}, err
	}
	slices.SortFunc(m.nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	report := simulate(m, settings, pending).report(requests)
	report.Nodes = len(m.nodes)
	report.Lost, report.Ignored = append(report.Lost, lost...), append(report.Ignored, ignored...)
	return report, nil
}

// gone returns which nodes are lost.
func (q *question) gone(m *mesh) (func(*corev1.Node) bool, error) {
	for _, name := range q.withoutNodes {
		if m.node(name) == nil {
			return nil, fmt.Errorf("--without-node: there is no node %q", name)
		}
	}
	zones := m.zones()
	for _, zone := range q.withoutZones {
		if !slices.Contains(zones, zone) {
			return nil, fmt.Errorf("--without-zone: no node is in zone %q, there are %s", zone, listed(zones))
		}
	}
	return func(n *corev1.Node) bool {
		zone, ok := n.Labels[corev1.LabelTopologyZone]
		return slices.Contains(q.withoutNodes, n.Name) || ok && slices.Contains(q.withoutZones, zone)
	}, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no zones"
	}
	return strings.Join(names, ", ")
}

// place takes the manifests in. What a Pod needs may stand behind it.
func (q *question) place(m *mesh) (pods []*corev1.Pod, ignored []string, err error) {
	found := false
	paths, twice := map[*corev1.Pod]string{}, map[types.UID]string{}
	for i := range q.documents {
		d := &q.documents[i]
		more, has, err := m.takeDocument(d, q.namespace)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", d.path, d.name(), err)
		}
		found = found || more != nil
		if !has {
			ignored = append(ignored, d.name())
		}
		for _, p := range more {
			paths[p] = d.path + ": " + d.name()
			if other, ok := twice[p.UID]; ok {
				return nil, nil, fmt.Errorf("%s: it stands twice, also in %s", paths[p], other)
			}
			twice[p.UID] = d.path
		}
		if pods = append(pods, more...); bounded(pods) != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", d.path, d.name(), bounded(pods))
		}
	}
	if len(q.documents) > 0 && !found {
		return nil, nil, errors.New("--filename: there is none of Pod, Deployment, ReplicaSet, StatefulSet, " +
			"DaemonSet, Job, CronJob and ReplicationController")
	}
	for _, p := range pods {
		err := m.runBy(p)
		if err == nil {
			err = m.admit(p)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", paths[p], err)
		}
	}
	return pods, ignored, m.rankGroups()
}

// takeDocument takes in an object of a manifest and returns its Pods, nil where it is of a kind that has none; false
// for an object of no matter to Pods.
func (m *mesh) takeDocument(d *document, namespace string) ([]*corev1.Pod, bool, error) {
	if d.object == nil {
		return nil, false, nil
	}
	if accessor, err := meta.Accessor(d.object); err == nil && accessor.GetNamespace() == "" {
		accessor.SetNamespace(namespace)
	}
	pods, more, has, err := expand(d.object, m.nodes)
	if err != nil || !has {
		return nil, err == nil && m.takes(d.object), err
	}
	for _, o := range more {
		m.takes(o)
	}
	return append([]*corev1.Pod{}, pods...), true, nil
}

// takes takes in an object of a manifest; false for one that decisions do not depend on.
func (m *mesh) takes(object runtime.Object) bool {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		m.claim(o)
		return true
	case *corev1.Node: // --add-node is for these
		return false
	}
	return m.add(object)
}

// admitAll makes the Pods those that the apiserver would show.
func (m *mesh) admitAll(pods []*corev1.Pod) error {
	for _, p := range pods {
		if err := m.admit(p); err != nil {
			return fmt.Errorf("%s/%s: %w", p.Namespace, p.Name, err)
		}
		for _, c := range ephemeral(p) {
			m.claim(c)
		}
	}
	return nil
}
