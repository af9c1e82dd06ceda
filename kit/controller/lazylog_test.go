package controller

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// counting counts how often values are encoded into a logger.
type counting struct {
	zapcore.Core

	encoded *int
}

func (c counting) With(fields []zapcore.Field) zapcore.Core {
	*c.encoded++
	return counting{c.Core.With(fields), c.encoded}
}

// The values of a pass cost nothing unless something is logged, and are all there if it is.
func TestLoggerKeepsValuesUntilTheyAreLogged(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	encoded := 0
	log := newLogger(zap.New(counting{core, &encoded}, zap.AddCaller()))
	parent := log.WithName("job").WithValues("namespace", "default")
	one, two := parent.WithValues("name", "pi"), parent.WithValues("name", "e")
	one.V(1).Info("not logged")
	if encoded != 0 || logged.Len() != 0 {
		t.Errorf("values were encoded %d times for %d lines", encoded, logged.Len())
	}
	one.Info("passed", "took", "1s")
	two.Error(errors.New("refused"), "failed")
	lines := logged.AllUntimed()
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	first, second := lines[0].ContextMap(), lines[1].ContextMap()
	if first["namespace"] != "default" || first["name"] != "pi" || first["took"] != "1s" || len(first) != 3 ||
		lines[0].LoggerName != "job" {
		t.Errorf("%s: %v", lines[0].LoggerName, first)
	}
	if second["name"] != "e" || second["error"] != "refused" {
		t.Errorf("%v", second)
	}
	for _, line := range lines {
		if !strings.HasSuffix(line.Caller.File, "lazylog_test.go") {
			t.Errorf("logged at %s", line.Caller)
		}
	}
}
