package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind that is not served is logged once, as no error, and again ever more rarely; of other errors nothing is lost.
func TestUnservedKindsAreToldOfRarely(t *testing.T) {
	core, logged := observer.New(zap.DebugLevel)
	now := time.Unix(0, 0)
	var failures []string
	log := newUnservedLogger(zapr.NewLogger(zap.New(core, zap.AddCaller())), func() time.Time { return now },
		func(source string, err error) { failures = append(failures, source+": "+err.Error()) }).
		WithName("source").WithValues("a", "b")
	unserved := func(kind string) error {
		return fmt.Errorf("looking: %w", &meta.NoKindMatchError{
			GroupKind: schema.GroupKind{Group: "batch", Kind: kind}})
	}
	const poll = 10 * time.Second
	var minutes []int
	for ; now.Before(time.Unix(0, 0).Add(3 * time.Hour)); now = now.Add(poll) {
		if log.Error(unserved("Job"), "install it"); logged.Len() > 0 {
			line := logged.TakeAll()[0]
			if line.Level != zap.InfoLevel || line.ContextMap()["kind"] != "Job.batch" ||
				line.ContextMap()["a"] != "b" || line.LoggerName != "source" ||
				!strings.HasSuffix(line.Caller.File, "unserved_test.go") {
				t.Fatalf("%+v", line)
			}
			minutes = append(minutes, int(now.Sub(time.Unix(0, 0)).Minutes()))
		}
	}
	if fmt.Sprint(minutes) != "[0 10 30 70 150]" {
		t.Errorf("it was told of after %v minutes", minutes)
	}
	if len(failures) != 3*360 || failures[0] != `kind Job.batch: no matches for kind "Job" in group "batch"` {
		t.Errorf("introspection was told %d times, first %q", len(failures), failures[0])
	}
	log.Error(unserved("CronJob"), "install it")
	log.Error(errors.New("refused"), "failed", "c", "d")
	log.Info("passed")
	lines := logged.TakeAll()
	if len(lines) != 3 || lines[0].ContextMap()["kind"] != "CronJob.batch" || lines[1].Level != zap.ErrorLevel ||
		lines[1].ContextMap()["error"] != "refused" || lines[1].ContextMap()["c"] != "d" ||
		lines[2].Message != "passed" {
		t.Errorf("%+v", lines)
	}
}
