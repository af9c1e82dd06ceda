package mutatingwebhookconfiguration

import (
	"testing"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
