package integration

import (
	"testing"

	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

func TestServiceCIDR(t *testing.T) {
	t.Parallel()
	scenario.ServiceCIDR(t, inprocess.New(t, inprocess.Options{Guarded: true}))
}
