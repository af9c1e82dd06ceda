package tokenrequest

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestTokenRequest(t *testing.T) {
	for _, row := range []struct {
		name string
		spec authenticationv1.TokenRequestSpec
		want []string
	}{
		{"nothing said", authenticationv1.TokenRequestSpec{}, nil},
		{"ten minutes", authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}, nil},
		{"too short", authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](599)},
			[]string{"spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"}},
		{"too long", authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(1)<<32 + 1)},
			[]string{"spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 " +
				"seconds"}},
		{"bound to something without a name",
			authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod"}},
			[]string{"spec.boundObjectRef.name: Required value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			request := &authenticationv1.TokenRequest{Spec: row.spec}
			Default(request)
			fieldtest.Check(t, Validate(request), row.want...)
		})
	}
}

func TestCheckBound(t *testing.T) {
	for kind, ok := range map[string]bool{"Pod": true, "Secret": true, "Node": true, "Deployment": false, "": false} {
		if err := checkBound(&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind,
			Name: "a"}); (err == nil) != ok {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if checkUID("", "a") != nil || checkUID("a", "a") != nil || checkUID("b", "a") == nil {
		t.Error("only another UID is refused")
	}
}
