package fairshare

import "testing"

// What tenants and nodes take, whatever they are called, is not counted with what the mesh's own daemons take.
func TestClassOf(t *testing.T) {
	for client, want := range map[string]class{
		"ann":                                       tenants,
		"system:anonymous":                          tenants,
		"system:serviceaccount:team-a":              tenants,
		"system:serviceaccount:kube-system-2":       tenants,
		"system:node:node-1":                        nodes,
		"system:serviceaccount:kube-system:keelson": mesh,
		"system:kube-scheduler":                     mesh,
		"system:apiserver":                          mesh,
	} {
		if got := classOf(client); got != want {
			t.Errorf("%s is of class %d, want %d", client, got, want)
		}
	}
	s := New(4, 0)
	for _, client := range []string{"ann", "system:node:node-1", "system:kube-scheduler"} {
		if !s.Take(client, 1) || s.Take(client, 1) {
			t.Errorf("%s has not one of four", client)
		}
	}
}

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
