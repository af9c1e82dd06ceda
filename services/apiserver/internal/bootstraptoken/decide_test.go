package bootstraptoken

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func token(id string, edits ...func(*corev1.Secret)) corev1.Secret {
	s := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id},
		Type: "bootstrap.kubernetes.io/token", Data: map[string][]byte{"token-id": []byte(id),
			"token-secret": []byte("0123456789abcdef"), "usage-bootstrap-signing": []byte("true")}}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

func has(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

func ends(at time.Time) func(*corev1.Secret) { return has("expiration", at.Format(time.RFC3339)) }

func opaque(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }

func goes(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }

func TestExpired(t *testing.T) {
	tokens := []corev1.Secret{token("never0"), token("later0", ends(now.Add(time.Second))), token("now000", ends(now)),
		token("before", ends(now.Add(-time.Hour))), token("unread", has("expiration", "soon")),
		token("other0", ends(now), opaque), token("going0", ends(now), goes)}
	var got []string
	for _, s := range Expired(tokens, now) {
		got = append(got, strings.TrimPrefix(s.Name, "bootstrap-token-"))
	}
	if want := []string{"now000", "before", "unread"}; !slices.Equal(got, want) {
		t.Errorf("expired are %v, want %v", got, want)
	}
}

func TestSigned(t *testing.T) {
	sign := func(content, id, secret string) (string, error) {
		if secret != "0123456789abcdef" {
			return "", errors.New("no secret")
		}
		return content + " by " + id, nil
	}
	tokens := []corev1.Secret{token("aaaaaa"), token("bbbbbb", ends(now.Add(time.Second))), token("expird", ends(now)),
		token("nosign", has("usage-bootstrap-signing", "false")), token("going0", goes), token("other0", opaque),
		token("nosecr", has("token-secret", "")), token("otherd", has("token-id", "aaaaaa")),
		token("x", func(s *corev1.Secret) { s.Name = "mine" })}
	for _, row := range []struct{ info, want map[string]string }{
		{map[string]string{"kubeconfig": "k", "mine": "x"}, map[string]string{"kubeconfig": "k", "mine": "x",
			"jws-kubeconfig-aaaaaa": "k by aaaaaa", "jws-kubeconfig-bbbbbb": "k by bbbbbb"}},
		{map[string]string{"kubeconfig": "k", "jws-kubeconfig-aaaaaa": "old", "jws-kubeconfig-zzzzzz": "z"},
			map[string]string{"kubeconfig": "k", "jws-kubeconfig-aaaaaa": "k by aaaaaa",
				"jws-kubeconfig-bbbbbb": "k by bbbbbb"}},
		{map[string]string{"jws-kubeconfig-aaaaaa": "old"}, map[string]string{}},
		{nil, nil},
	} {
		before := maps.Clone(row.info)
		got, err := Signed(row.info, tokens, now, sign)
		if err != nil || !maps.Equal(got, row.want) {
			t.Errorf("%v becomes %v, %v; want %v", row.info, got, err, row.want)
		}
		if again, err := Signed(got, tokens, now, sign); err != nil || !maps.Equal(again, got) {
			t.Errorf("and then %v, %v", again, err)
		}
		if !reflect.DeepEqual(before, row.info) {
			t.Error("the decision changed its input")
		}
	}
	broken := []corev1.Secret{token("aaaaaa", has("token-secret", "other"))}
	if _, err := Signed(map[string]string{"kubeconfig": "k"}, broken, now, sign); err == nil {
		t.Error("a failure to sign is not told")
	}
}
