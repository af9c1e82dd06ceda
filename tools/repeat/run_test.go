package repeat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makefile runs a test that fails in the rounds of even seeds, and leaves what a round before has left where it is.
const makefile = `
tests:
	@mkdir -p out; seed=$(lastword $(subst =, ,$(TESTFLAGS))); [ $$seed = $(RAPID_SEED) ] || exit; \
	case $$seed in *[02468]) how=fail;; *) how=pass;; esac; \
	echo "{\"Action\":\"$$how\",\"Package\":\"keelson.dev/a\",\"Test\":\"T\"}" >out/$$seed.json; test $$how = pass
silent:
	@true
`

// The rounds of a target are told apart by their seeds, a red one does not end the rest, and what an earlier round left
// does not count again.
func TestTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Rounds: 3, First: 3, Target: "tests", Events: []string{filepath.Join("out", "*.json")}}
	var said, table strings.Builder
	outcomes, err := Run(o, &said)
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if err := outcomes.Print(&table); err != nil || table.String() != "  1 of 3  a T  seeds 4\n" {
		t.Errorf("%q, %v", &table, err)
	}
	o.Target = "silent"
	if _, err := Run(o, &said); err == nil || err.Error() != "make silent left no events in out/*.json" {
		t.Errorf("a target without events: %v", err)
	}
}
