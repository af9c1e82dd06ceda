package vm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/scenario"
)

// writer makes objects as fast as it can and keeps the names of those that the apiserver has acknowledged.
type writer struct {
	w      *scenario.World
	prefix string
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
	last         error
}

// write starts a writer.
func write(w *scenario.World, prefix string) *writer {
	ctx, cancel := context.WithCancel(w.Context())
	wr := &writer{w: w, prefix: prefix, cancel: cancel}
	for i := range 4 {
		wr.done.Go(func() { wr.loop(ctx, fmt.Sprintf("%s-%d", prefix, i)) })
	}
	return wr
}

func (wr *writer) loop(ctx context.Context, prefix string) {
	data := strings.Repeat("0123456789abcdef", 256)
	for i := 0; ctx.Err() == nil; i++ {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)},
			Data: map[string]string{"data": data}}
		_, err := wr.w.Client.CoreV1().ConfigMaps(wr.w.Namespace).Create(ctx, object, metav1.CreateOptions{})
		wr.mu.Lock()
		if err == nil {
			wr.acknowledged = append(wr.acknowledged, object.Name)
		} else {
			wr.last = err
		}
		wr.mu.Unlock()
	}
}

func (wr *writer) count() int {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	return len(wr.acknowledged)
}

func (wr *writer) problem() error {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	return wr.last
}

// stop ends the writer and returns what was acknowledged.
func (wr *writer) stop() []string {
	wr.cancel()
	wr.done.Wait()
	return wr.acknowledged
}

// expectKept asks for every object that was acknowledged.
func expectKept(t *testing.T, w *scenario.World, acknowledged []string) {
	t.Helper()
	if len(acknowledged) == 0 {
		t.Fatal("nothing was acknowledged, so nothing can be lost")
	}
	have := map[string]bool{}
	w.Await("a list of what was written", func() string {
		list, err := w.Client.CoreV1().ConfigMaps(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, item := range list.Items {
			have[item.Name] = true
		}
		return ""
	})
	lost := slices.DeleteFunc(slices.Clone(acknowledged), func(name string) bool { return have[name] })
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged objects are lost: %s", len(lost), len(acknowledged), lost)
	}
	t.Logf("%d acknowledged objects are there", len(acknowledged)-len(lost))
}

// powerCut takes the power away in the middle of writes. (SAF-176)
func powerCut(t *testing.T, m *Mesh) {
	var acknowledged []string
	stopped(t, m, func(w *scenario.World) {
		wr := write(w, "cut")
		w.Await("a hundred objects", func() string {
			if n := wr.count(); n < 100 {
				return fmt.Sprintf("%d were acknowledged (%v)", n, wr.problem())
			}
			return ""
		})
		m.Cut(t)
		acknowledged = wr.stop()
		m.PowerOn(t)
		m.Again(t)
		expectKept(t, w, acknowledged)
	})
}

// fullDisk lets others fill the disk: what was acknowledged is kept, the reason can be read, and with room the mesh
// goes on.
func fullDisk(t *testing.T, m *Mesh) {
	w := scenario.In(t, m)
	w.Deploy(2, scenario.HelloV1)
	m.Shell(t,
		"fallocate -l $(($(df --output=avail -B1 / | tail -1) - 4194304)) /fill; cat /dev/zero >/fill2 || true; "+
			"df /")
	wr := write(w, "full")
	w.Await("a write to be refused", func() string {
		if wr.problem() == nil {
			return fmt.Sprintf("%d were acknowledged", wr.count())
		}
		return ""
	})
	acknowledged := wr.stop()
	t.Logf("%d were acknowledged, the last refusal: %v", len(acknowledged), wr.problem())
	t.Log(m.result(t.Context(), payloadMount+"/bin/keel --data-dir "+dataDir+" status"))
	t.Log(m.result(t.Context(), "tail -n 5 "+dataDir+"/logs/*.log"))
	m.Shell(t, "rm /fill /fill2")
	m.Again(t)
	if len(acknowledged) > 0 {
		expectKept(t, w, acknowledged)
	}
	w.Deploy(3, scenario.HelloV1)
}
