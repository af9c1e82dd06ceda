package rest_test

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"keelson.dev/services/apiserver/internal/registry/batch/job"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/scheduling/priorityclass"
)

// An object whose deletion its kind refuses stays, alone and in a collection, and no other validation sees it.
func TestValidateDelete(t *testing.T) {
	w := newWorld(t, rest.Serve(priorityclass.Resource))
	classes := open(t, w, priorityclass.Resource)
	const own, system = "own", "system-node-critical"
	for _, name := range []string{own, system} {
		class := &schedulingv1.PriorityClass{}
		class.Name = name
		classes.put(class)
	}
	asked := map[string]bool{}
	ask := func(_ context.Context, obj runtime.Object) error {
		asked[obj.(*schedulingv1.PriorityClass).Name] = true
		return nil
	}
	_, _, err := classes.Delete(classes.ctx(), system, ask, &metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) || classes.read(system) == nil {
		t.Errorf("deleting %s: %v, left %v", system, err, classes.read(system))
	}
	_, err = classes.DeleteCollection(classes.ctx(), ask, &metav1.DeleteOptions{}, &internalversion.ListOptions{})
	if !apierrors.IsForbidden(err) || classes.read(system) == nil {
		t.Errorf("deleting all: %v, left %v", err, classes.read(system))
	}
	if _, _, err = classes.Delete(classes.ctx(), own, ask, &metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Errorf("deleting %s: %v", own, err)
	}
	if classes.read(own) != nil || !asked[own] || asked[system] {
		t.Errorf("left %v, asked about %v", classes.read(own), asked)
	}
}

// told keeps the warnings.
type told []string

func (t *told) AddWarning(_, text string) { *t = append(*t, text) }

// Who deletes is warned once, of one object or of several.
func TestWarningsOnDelete(t *testing.T) {
	w := newWorld(t, rest.Serve(job.Resource))
	jobs := open(t, w, job.Resource)
	for _, name := range []string{"a", "b", "c", "d"} {
		j := &batchv1.Job{}
		j.Name = name
		jobs.put(j)
	}
	for _, row := range []struct {
		job     string
		options *metav1.DeleteOptions
		want    int
	}{
		{"a", &metav1.DeleteOptions{}, 1},
		{"b", nil, 0},
		{"c", background, 0},
	} {
		var warned told
		ctx := warning.WithWarningRecorder(jobs.ctx(), &warned)
		_, _, err := jobs.Delete(ctx, row.job, genericrest.ValidateAllObjectFunc, row.options.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if len(warned) != row.want {
			t.Errorf("job %s: warned of %q, want %d", row.job, warned, row.want)
		}
	}
	var warned told
	ctx := warning.WithWarningRecorder(jobs.ctx(), &warned)
	if _, err := jobs.DeleteCollection(ctx, genericrest.ValidateAllObjectFunc, &metav1.DeleteOptions{},
		&internalversion.ListOptions{}); err != nil || len(warned) != 1 {
		t.Errorf("a collection: %v, warned of %q, want one", err, warned)
	}
}
