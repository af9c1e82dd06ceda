package fairshare

import "testing"

func TestClient(t *testing.T) {
	for user, want := range map[string]string{
		"ann":                                         "ann",
		"system:node:node-1":                          "system:node:node-1",
		"system:serviceaccount:team-a:one":            "system:serviceaccount:team-a",
		"system:serviceaccount:team-a:other":          "system:serviceaccount:team-a",
		"system:serviceaccount:team-b:one":            "system:serviceaccount:team-b",
		"system:serviceaccount:team-a":                "system:serviceaccount:team-a",
		"system:serviceaccount:kube-system:scheduler": "system:serviceaccount:kube-system:scheduler",
	} {
		if got := Client(user); got != want {
			t.Errorf("%s counts as %s, want %s", user, got, want)
		}
	}
}
