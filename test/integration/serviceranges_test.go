package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestServiceRange(t *testing.T) {
	t.Parallel()
	scenario.ServiceRange(t, inprocess.New(t, inprocess.Options{Guarded: true}))
}
