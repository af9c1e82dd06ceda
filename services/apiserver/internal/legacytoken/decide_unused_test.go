package legacytoken

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/authn/satoken"
)

func TestDecideUnused(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2027, 6, 15, 12, 0, 0, 0, time.UTC)
	limit := now.Add(-100 * day) // 2027-03-07, at noon
	created := func(at time.Time) func(*Use) {
		return func(u *Use) { u.Secret.CreationTimestamp = metav1.NewTime(at) }
	}
	labels := func(used, since string) func(*Use) {
		return func(u *Use) {
			u.Secret.Labels = map[string]string{}
			for name, value := range map[string]string{satoken.LastUsedLabel: used, satoken.InvalidSinceLabel: since} {
				if value != "" {
					u.Secret.Labels[name] = value
				}
			}
		}
	}
	for _, row := range []struct {
		name string
		edit func(*Use)
		want Verdict
	}{
		{"never used", func(*Use) {}, Mark},
		{"made just before the limit", created(limit.Add(-time.Second)), Mark},
		{"made at the limit", created(limit), Keep},
		{"recorded long enough", func(u *Use) { u.Recorded = time.Date(2027, 3, 6, 0, 0, 0, 0, time.UTC) }, Mark},
		{"recorded a day less", func(u *Use) { u.Recorded = time.Date(2027, 3, 7, 0, 0, 0, 0, time.UTC) }, Keep},
		{"used before the limit", labels("2027-03-06", ""), Mark},
		{"used on the day of the limit", labels("2027-03-07", ""), Keep},
		{"used on no day", labels("yesterday", ""), Keep},
		{"marked before the limit", labels("", "2027-03-06"), Remove},
		{"marked on the day of the limit", labels("", "2027-03-07"), Keep},
		{"marked on no day", labels("", "yesterday"), Mark},
		{"marked before the limit, used since", labels("2027-05-01", "2027-03-06"), Keep},
		{"marked before the limit, used before", labels("2027-03-01", "2027-03-06"), Remove},
		{"made by hand", func(u *Use) { u.Account.Secrets = nil }, Keep},
		{"the account lists another one", func(u *Use) { u.Account.Secrets[0].Name = "t" }, Keep},
		{"no account", func(u *Use) { u.Account = nil }, Keep},
		{"an account that was made anew",
			func(u *Use) { u.Secret.Annotations[corev1.ServiceAccountUIDKey] = "u0" }, Keep},
		{"of another type", func(u *Use) { u.Secret.Type = corev1.SecretTypeOpaque }, Keep},
		{"on its way out", func(u *Use) { u.Secret.DeletionTimestamp = &metav1.Time{Time: now} }, Keep},
	} {
		t.Run(row.name, func(t *testing.T) {
			u := Use{Secret: made(), Account: account(), Recorded: limit.Add(-10 * day), Period: 100 * day, Now: now}
			u.Account.Secrets = []corev1.ObjectReference{{Name: "s"}}
			created(limit.Add(-300 * day))(&u)
			row.edit(&u)
			before := u.Secret.DeepCopy()
			if got := DecideUnused(u); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			if !reflect.DeepEqual(u.Secret, before) {
				t.Error("the decision changed its input")
			}
		})
	}
}

func TestTracking(t *testing.T) {
	now := time.Date(2026, 1, 2, 1, 0, 0, 0, time.FixedZone("east", 7200))
	for _, row := range []struct {
		data map[string]string
		want map[string]string
	}{
		{nil, map[string]string{"since": "2026-01-01"}},
		{map[string]string{"since": "soon"}, map[string]string{"since": "2026-01-01"}},
		{map[string]string{"since": "2025-02-30"}, map[string]string{"since": "2026-01-01"}},
		{map[string]string{"since": "2020-01-01"}, nil},
	} {
		if got := Tracking(row.data, now); !reflect.DeepEqual(got, row.want) {
			t.Errorf("of %v: %v, want %v", row.data, got, row.want)
		}
	}
}

func TestUsedBy(t *testing.T) {
	environment := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "environment"}}
	pods := []corev1.Pod{{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}},
		{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}},
	}}}, {Spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
		{SecretRef: environment}}}}}}}
	if used := usedBy(pods); len(used) != 2 || !used.HasAll("mounted", "environment") {
		t.Errorf("used: %v", used)
	}
}
