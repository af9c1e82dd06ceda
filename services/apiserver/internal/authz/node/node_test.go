package node

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// A node that has just learned of its Pod is ahead of the cache: only the store may refuse.
func TestAuthorizer(t *testing.T) {
	behind, broken := []corev1.Pod{pod("b", "theirs")}, errors.New("no leader")
	rows := map[string]struct {
		user          string
		groups        []string
		name          string
		cached, store []corev1.Pod
		fails         map[string]bool
		want          authorizer.Decision
		reason        string
		read          []string
		err           error
	}{
		"the cache knows": {name: "mine-secret", cached: cluster(), store: behind,
			want: authorizer.DecisionAllow, read: []string{"0"}},
		"the cache is behind": {name: "mine-secret", cached: behind, store: cluster(),
			want: authorizer.DecisionAllow, read: []string{"0", ""}},
		"the cache is not ready": {name: "mine-secret", fails: map[string]bool{"0": true}, store: cluster(),
			want: authorizer.DecisionAllow, read: []string{"0", ""}},
		"both say no": {name: "theirs-secret", cached: cluster(), store: cluster(),
			want: authorizer.DecisionNoOpinion, reason: "no relationship found between node 'a' and this object",
			read: []string{"0", ""}},
		"the store fails": {name: "theirs-secret", cached: cluster(), fails: map[string]bool{"": true},
			want: authorizer.DecisionNoOpinion, read: []string{"0", ""}, err: broken},
		"no Pods are needed": {name: "", want: authorizer.DecisionNoOpinion, reason: "No Object name found"},
		"not a node":         {user: "ann", name: "mine-secret", want: authorizer.DecisionNoOpinion},
		"not in the group of nodes": {groups: []string{"system:authenticated"}, name: "mine-secret",
			want: authorizer.DecisionNoOpinion},
		"a node without a name": {user: "system:node:", name: "mine-secret", want: authorizer.DecisionNoOpinion,
			reason: `unknown node for user "system:node:"`},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var read []string
			before := [][]corev1.Pod{copyOf(row.cached), copyOf(row.store)}
			a := New(Objects{Pods: func(_ context.Context, node, namespace, version string) ([]corev1.Pod, error) {
				if namespace == "" { // for drivers, of which none of the Pods has a volume
					return nil, nil
				}
				read = append(read, version)
				if node != "a" || namespace != "ns" {
					t.Errorf("asked for the Pods of node %q in %q, want those of a in ns", node, namespace)
				}
				if row.fails[version] {
					return nil, broken
				}
				if version == "0" {
					return row.cached, nil
				}
				return row.store, nil
			}})
			who := &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}}
			if row.user != "" {
				who.Name = row.user
			}
			if row.groups != nil {
				who.Groups = row.groups
			}
			got, reason, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
				User: who, Verb: "get", Resource: "secrets", Namespace: "ns", Name: row.name, ResourceRequest: true,
			})
			if got != row.want || reason != row.reason || !errors.Is(err, row.err) {
				t.Errorf("%v %q %v, want %v %q %v", got, reason, err, row.want, row.reason, row.err)
			}
			if !slices.Equal(read, row.read) {
				t.Errorf("read at the versions %q, want %q", read, row.read)
			}
			if !reflect.DeepEqual(before, [][]corev1.Pod{row.cached, row.store}) {
				t.Error("the listed Pods were changed")
			}
		})
	}
}

func copyOf(pods []corev1.Pod) []corev1.Pod {
	if pods == nil {
		return nil
	}
	return (&corev1.PodList{Items: pods}).DeepCopy().Items
}

// A volume that the cache does not know, or does not know to be the node's, is looked up in the store.
func TestVolumes(t *testing.T) {
	broken := errors.New("no leader")
	none := apierrors.NewNotFound(corev1.Resource(volumes), "v")
	mine, theirs, claimed := disks()["folder-a"], disks()["folder-b"], disks()["claimed-mine"]
	for name, row := range map[string]struct {
		cached, store any // a volume or an error
		want          authorizer.Decision
		read          []string
		err           error
	}{
		"the cache knows": {cached: mine, store: broken, want: authorizer.DecisionAllow, read: []string{"0"}},
		"a Pod's": {cached: claimed, store: broken, want: authorizer.DecisionAllow,
			read: []string{"0"}},
		"the cache has it not yet": {cached: none, store: mine, want: authorizer.DecisionAllow,
			read: []string{"0", ""}},
		"the cache is behind": {cached: theirs, store: mine, want: authorizer.DecisionAllow,
			read: []string{"0", ""}},
		"the cache is not ready": {cached: broken, store: mine, want: authorizer.DecisionAllow,
			read: []string{"0", ""}},
		"another node's": {cached: theirs, store: theirs, want: authorizer.DecisionNoOpinion,
			read: []string{"0", ""}},
		"there is none": {cached: none, store: none, want: authorizer.DecisionNoOpinion,
			read: []string{"0", ""}},
		"the store does not answer": {cached: none, store: broken, want: authorizer.DecisionNoOpinion,
			read: []string{"0", ""}, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			var read []string
			a := New(Objects{
				Pods: func(context.Context, string, string, string) ([]corev1.Pod, error) { return cluster(), nil },
				Volume: func(_ context.Context, _, version string) (*corev1.PersistentVolume, error) {
					read = append(read, version)
					answer := row.store
					if version == "0" {
						answer = row.cached
					}
					if err, failed := answer.(error); failed {
						return nil, err
					}
					return answer.(*corev1.PersistentVolume), nil
				},
			})
			got, _, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}},
				Verb: "get", Resource: volumes, Name: "v", ResourceRequest: true,
			})
			if got != row.want || !errors.Is(err, row.err) || !slices.Equal(read, row.read) {
				t.Errorf("%v %v, read at %q; want %v %v, %q", got, err, read, row.want, row.err, row.read)
			}
		})
	}
}
