package apiextensions

import "testing"

// What the library cannot handle, and what is just beyond.
func TestDecideMedia(t *testing.T) {
	const (
		inJSON, inProtobuf = "application/json", "application/vnd.kubernetes.protobuf"
		apply, merge       = "application/apply-patch+yaml", "application/merge-patch+json"
	)
	for _, row := range []struct {
		verb, subresource, media string
		refused                  bool
	}{
		{"create", "", inProtobuf, true}, {"update", "", inProtobuf, true}, {"update", "status", inProtobuf, true},
		{"update", "scale", inProtobuf, false}, {"create", "", inJSON, false}, {"delete", "", inProtobuf, false},
		{"deletecollection", "", inProtobuf, false}, {"patch", "scale", apply, true}, {"patch", "", apply, false},
		{"patch", "status", apply, false}, {"patch", "scale", merge, false}, {"create", "", "", false},
	} {
		if got := decideMedia(row.verb, row.subresource, row.media); (len(got) > 0) != row.refused {
			t.Errorf("%s of /%s in %q may be in %v", row.verb, row.subresource, row.media, got)
		}
	}
}
