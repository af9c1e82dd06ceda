package server

import (
	"encoding/json"
	"testing"

	"keelson.dev/services/nodeagent/internal/observed"
)

func TestRunningPods(t *testing.T) {
	ready, gone := []observed.Sandbox{{Ready: false}, {Ready: true}}, []observed.Sandbox{{Ready: false}}
	list := runningPods([]observed.Pod{
		{UID: "3", Namespace: "b", Name: "p", Sandboxes: gone, Containers: []observed.Container{
			{Name: "main", Image: "i", State: observed.Running}, {Name: "old", State: observed.Exited},
			{Name: "new", State: observed.Created}, {Name: "lost", State: observed.Unknown}}},
		{UID: "2", Namespace: "a", Name: "q", Sandboxes: ready},
		{UID: "1", Namespace: "a", Name: "p", Sandboxes: gone,
			Containers: []observed.Container{{Name: "old", State: observed.Exited}}},
		{UID: "0"},
	})
	got, err := json.Marshal(list)
	const want = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` +
		`{"metadata":{"name":"q","namespace":"a","uid":"2"},"spec":{"containers":[]},"status":{}},` +
		`{"metadata":{"name":"p","namespace":"b","uid":"3"},"spec":{"containers":[` +
		`{"name":"main","image":"i","resources":{}}]},"status":{}}]}`
	if string(got) != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
