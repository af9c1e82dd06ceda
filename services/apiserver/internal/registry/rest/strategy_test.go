package rest

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/resource"
)

// The rules learn from the request who writes, and from the clock when.
func TestWhoWritesAndWhen(t *testing.T) {
	var asked authenticationv1.UserInfo
	var was *corev1.ConfigMap
	var at metav1.Time
	s := &strategy[*corev1.ConfigMap]{Strategy: resource.Strategy[*corev1.ConfigMap]{
		SetRequester: func(_ *corev1.ConfigMap, who authenticationv1.UserInfo) { asked = who },
		PrepareAt:    func(_, old *corev1.ConfigMap, now metav1.Time) { was, at = old, now },
	}}
	ann := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "ann", UID: "u1",
		Groups: []string{"readers"}, Extra: map[string][]string{"scopes": {"some"}}})
	old := &corev1.ConfigMap{}
	for _, row := range []struct {
		name  string
		write func()
		who   string
		old   *corev1.ConfigMap
	}{
		{"a create", func() { s.PrepareForCreate(ann, &corev1.ConfigMap{}) }, "ann", nil},
		{"a create by nobody known", func() { s.PrepareForCreate(context.Background(), &corev1.ConfigMap{}) }, "", nil},
		{"an update", func() { s.PrepareForUpdate(ann, &corev1.ConfigMap{}, old) }, "nobody asked", old},
	} {
		asked, was, at = authenticationv1.UserInfo{Username: "nobody asked"}, &corev1.ConfigMap{}, metav1.Time{}
		before := time.Now()
		row.write()
		if asked.Username != row.who || was != row.old || at.Time.Before(before) {
			t.Errorf("%s: by %+v, of %p, at %v", row.name, asked, was, at)
		}
		if row.who == "ann" && (asked.UID != "u1" || asked.Groups[0] != "readers" ||
			asked.Extra["scopes"][0] != "some") {
			t.Errorf("%s: by %+v", row.name, asked)
		}
	}
}
