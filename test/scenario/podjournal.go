package scenario

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/kit/podview"
)

// podJournal writes down in order what becomes of a namespace's Pods: made, ready, ending, gone.
type podJournal struct {
	mutex sync.Mutex // guards what follows
	last  map[string]string
	lines []string
	// newest is the newest version of a Pod that was seen.
	newest int64
}

// journalPods begins a journal. The scenarios that keep one end no apiserver, so that one watch is enough.
func journalPods(w *World) *podJournal {
	w.Helper()
	watcher, err := w.Client.CoreV1().Pods(w.Namespace).Watch(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatalf("watching Pods: %v", err)
	}
	w.Cleanup(watcher.Stop)
	j := &podJournal{last: map[string]string{}}
	go func() {
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				j.note(event.Type, pod)
			}
		}
	}()
	return j
}

func (j *podJournal) note(event watch.EventType, pod *corev1.Pod) {
	state := "made"
	switch {
	case event == watch.Deleted:
		state = "gone"
	case podview.IsTerminating(pod):
		state = "ending"
	case podview.IsReady(pod):
		state = "ready"
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.newest = max(j.newest, versionOf(pod))
	if line := state + " " + pod.Name; j.last[pod.Name] != line {
		j.last[pod.Name], j.lines = line, append(j.lines, line)
	}
}

// names are the names of the Pods that reached the state so far, in order.
func (j *podJournal) names(w *World, state string) (names []string) {
	w.Helper()
	awaitSeen(w, func() int64 {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		return j.newest
	})
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, line := range j.lines {
		if name, ok := strings.CutPrefix(line, state+" "); ok {
			names = append(names, name)
		}
	}
	return names
}

// expect waits until so much was written down since the last call, and compares it. Words of one line are split by
// blanks, lines by commas.
func (j *podJournal) expect(w *World, want string) {
	w.Helper()
	wanted := strings.Split(want, ", ")
	var got []string
	w.Await("the Pods to change: "+want, func() Answer {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		got = slices.Clone(j.lines)
		if len(got) < len(wanted) {
			return Saw("so far: " + strings.Join(got, ", "))
		}
		j.lines = nil
		return ""
	})
	if !slices.Equal(got, wanted) {
		w.Errorf("the Pods changed so: %s; want %s", strings.Join(got, ", "), want)
	}
}

// awaitSeen waits until a watch of the world's Pods has shown what they are now. seen is the newest version that it has
// shown so far.
func awaitSeen(w *World, seen func() int64) {
	w.Helper()
	newest := int64(0)
	for _, pod := range w.Pods("") {
		newest = max(newest, versionOf(&pod))
	}
	w.Await("the watch to show the Pods as they are", func() Answer {
		if version := seen(); version < newest {
			return Sawf("version %d of %d", version, newest)
		}
		return ""
	})
}

// versionOf is the version of the store in which an object was written last: a number in every store that we have.
func versionOf(object metav1.Object) int64 {
	version, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	return version
}
