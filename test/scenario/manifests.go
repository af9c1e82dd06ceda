package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// service is a Service for the Pods of web.
const service = `apiVersion: v1
kind: Service
metadata:
  name: web-svc
  labels: {app: web}
spec:
  type: LoadBalancer
  ports: [{port: 80}]
  selector: {app: web}
`

// says runs kubectl and compares what it prints.
func (w *World) says(want string, args ...string) {
	w.Helper()
	if got := strings.TrimSpace(w.Kubectl(args...)); got != want {
		w.Errorf("kubectl %s printed %q, want %q", strings.Join(args, " "), got, want)
	}
}

// refuses runs kubectl and expects that it fails with words on standard error.
func (w *World) refuses(stdin string, words []string, args ...string) {
	w.Helper()
	r := w.TryKubectl(stdin, args...)
	if r.Code == 0 {
		w.Errorf("kubectl %s succeeded:\n%s", strings.Join(args, " "), r.Stdout)
	}
	for _, word := range words {
		if !strings.Contains(r.Stderr, word) {
			w.Errorf("kubectl %s said %q, want %q in it", strings.Join(args, " "), r.Stderr, word)
		}
	}
}

// directory writes files into a new directory; a name may have folders.
func (w *World) directory(files map[string]string) string {
	w.Helper()
	dir := w.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.Fatalf("making a folder for %s: %v", name, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.Fatalf("writing %s: %v", name, err)
		}
	}
	return dir
}

// deployment reads the Deployment of that name.
func (w *World) deployment(name string) *appsv1.Deployment {
	w.Helper()
	var found *appsv1.Deployment
	w.Await("Deployment "+name, func() Answer {
		var err error
		if found, err = w.Client.AppsV1().Deployments(w.Namespace).Get(w.Context(), name,
			metav1.GetOptions{}); err != nil {
			return Saw(err.Error())
		}
		return ""
	})
	return found
}

// replicaSets returns the namespace's ReplicaSets by the image of their first container.
func (w *World) replicaSets() map[string]*appsv1.ReplicaSet {
	w.Helper()
	sets := map[string]*appsv1.ReplicaSet{}
	w.Await("the ReplicaSets", func() Answer {
		list, err := w.Client.AppsV1().ReplicaSets(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		for i := range list.Items {
			sets[list.Items[i].Spec.Template.Spec.Containers[0].Image] = &list.Items[i]
		}
		return ""
	})
	return sets
}

// awaitOutput waits until what kubectl prints has all the words. Of a log, no word goes over lines: a container's two
// streams share the log, and the lines of one have no order against those of the other.
func (w *World) awaitOutput(words []string, args ...string) string {
	w.Helper()
	if args[0] == "logs" && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "\n") }) {
		w.Fatalf("kubectl %s: a word of %q goes over lines", strings.Join(args, " "), words)
	}
	var got string
	w.Await("kubectl "+strings.Join(args, " "), func() Answer {
		r := w.TryKubectl("", args...)
		got = r.Stdout
		for _, word := range words {
			if !strings.Contains(got, word) {
				return Saw(got + r.Stderr + "lacks " + word)
			}
		}
		return ""
	})
	return got
}
