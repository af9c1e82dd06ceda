package namespace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestPrepareForCreate(t *testing.T) {
	ns := &corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/x"}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	object := Resource.ObjectWrites()
	object.PrepareForCreate(ns)
	again := ns.DeepCopy()
	object.PrepareForCreate(again)
	if ns.Status.Phase != corev1.NamespaceActive || len(ns.Spec.Finalizers) != 2 ||
		ns.Spec.Finalizers[1] != corev1.FinalizerKubernetes || !equality.Semantic.DeepEqual(ns, again) {
		t.Errorf("got %+v, then %+v", ns, again)
	}
}

func TestDefault(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a",
		Labels: map[string]string{corev1.LabelMetadataName: "b"}}}
	if Default(ns); ns.Labels[corev1.LabelMetadataName] != "a" {
		t.Errorf("labels %v", ns.Labels)
	}
	unnamed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}
	if Default(unnamed); unnamed.Labels != nil {
		t.Errorf("labels %v before there is a name", unnamed.Labels)
	}
}

func TestPlainUpdatesChangeNeitherSpecNorStatus(t *testing.T) {
	old := &corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
	changed := &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	object, status, finalizers := changed.DeepCopy(), changed.DeepCopy(), changed.DeepCopy()
	Resource.ObjectWrites().PrepareForUpdate(object, old)
	Resource.StatusWrites().PrepareForUpdate(status, old)
	finalizeStrategy.PrepareForUpdate(finalizers, old)
	if len(object.Spec.Finalizers) != 1 || object.Status.Phase != corev1.NamespaceActive {
		t.Errorf("the object's own update made %+v", object)
	}
	if len(status.Spec.Finalizers) != 1 || status.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("/status made %+v", status)
	}
	if len(finalizers.Spec.Finalizers) != 0 || finalizers.Status.Phase != corev1.NamespaceActive {
		t.Errorf("/finalize made %+v", finalizers)
	}
}

func TestMarkTerminating(t *testing.T) {
	first, later := metav1.Unix(100, 0), metav1.Unix(200, 0)
	for _, row := range []struct {
		name    string
		had     []string
		options metav1.DeleteOptions
		want    []string
	}{
		{"no policy", []string{"example.com/x"}, metav1.DeleteOptions{}, []string{"example.com/x"}},
		{"foreground", nil, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)},
			[]string{metav1.FinalizerDeleteDependents}},
		{"orphan after foreground", []string{metav1.FinalizerDeleteDependents},
			metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)},
			[]string{metav1.FinalizerOrphanDependents}},
		{"background after orphan", []string{metav1.FinalizerOrphanDependents},
			metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, []string{}},
		{"orphan twice", []string{metav1.FinalizerOrphanDependents},
			metav1.DeleteOptions{OrphanDependents: ptr.To(true)}, []string{metav1.FinalizerOrphanDependents}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Finalizers: row.had}}
			MarkTerminating(ns, &row.options, first)
			MarkTerminating(ns, &row.options, later)
			if !ns.DeletionTimestamp.Equal(&first) || ns.Status.Phase != corev1.NamespaceTerminating {
				t.Errorf("marked at %v as %s", ns.DeletionTimestamp, ns.Status.Phase)
			}
			if !equality.Semantic.DeepEqual(ns.Finalizers, row.want) {
				t.Errorf("finalizers %v, want %v", ns.Finalizers, row.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	with := func(finalizers ...corev1.FinalizerName) *corev1.Namespace {
		return &corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: finalizers}}
	}
	fieldtest.Check(t, Validate(with("kubernetes", "example.com/x")))
	fieldtest.Check(
		t,
		ValidateFinalizeUpdate(with("other", "a b"), with()),
		`spec.finalizers[0]: Invalid value: "other": name is neither a standard finalizer name nor is it fully qualified`,
		`spec.finalizers[1]: Invalid value: "a b"`,
	)
}

func TestValidateStatusUpdate(t *testing.T) {
	now := metav1.Unix(100, 0)
	phase := func(phase corev1.NamespacePhase, deleted *metav1.Time) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted},
			Status: corev1.NamespaceStatus{Phase: phase}}
	}
	fieldtest.Check(t, ValidateStatusUpdate(phase(corev1.NamespaceActive, nil), nil))
	fieldtest.Check(t, ValidateStatusUpdate(phase(corev1.NamespaceTerminating, &now), nil))
	fieldtest.Check(t, ValidateStatusUpdate(phase(corev1.NamespaceTerminating, nil), nil),
		"status.phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty")
	fieldtest.Check(t, ValidateStatusUpdate(phase(corev1.NamespaceActive, &now), nil),
		"status.phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty")
}
