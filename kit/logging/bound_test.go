package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/klog/v2"
)

// TestLinesOfLibrariesAreBounded: libraries log a limited number of lines in a time, for any cause, and how many
// were left out is logged. The daemon's own are not counted, nor are those of a level that is off.
func TestLinesOfLibrariesAreBounded(t *testing.T) {
	restore(t)
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zapcore.InfoLevel)
		own := zap.New(core)
		Capture(own)
		atOnce, perSecond := ofLibraries.most, int(time.Second/ofLibraries.each)
		for range 10 * atOnce {
			klog.V(1).Info("of a level that is off")
		}
		for i := range 3 * atOnce {
			if i%2 == 0 {
				klog.Background().Error(fmt.Errorf("request %d is odd", i), "Unhandled Error")
			} else {
				log.Default().Printf("http: TLS handshake error from 192.0.2.1:%d: odd", i)
			}
		}
		if got := lines.TakeAll(); len(got) != atOnce {
			t.Errorf("%d lines at once, want %d", len(got), atOnce)
		}
		own.Info("its own")
		if got := lines.TakeAll(); len(got) != 1 {
			t.Errorf("of its own: %v", got)
		}
		time.Sleep(time.Second)
		for range 2 * perSecond {
			klog.Background().Info("more")
		}
		got := lines.TakeAll()
		if len(got) != 1+perSecond || got[0].Level != zapcore.WarnLevel ||
			got[0].ContextMap()["lines"] != int64(2*atOnce) {
			t.Errorf("a second later %d lines, first %v", len(got), got[0])
		}
	})
}

// TestALineIsBounded: a line holds only so much of texts that others wrote, in its message, its fields and its errors,
// and the logged object is not changed.
func TestALineIsBounded(t *testing.T) {
	var out bytes.Buffer
	to, err := New(Options{Level: "info", Format: "json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 400_000)
	fields := []zap.Field{zap.String("text", long), zap.Error(errors.New(long)), zap.Stringer("of", text(long)),
		zap.ByteString("bytes", []byte(long)), zap.String("short", "kept"), zap.Int("number", 7)}
	to.With(zap.String("always", long)).Named("podgc").Warn(long, fields...)
	line := out.String()
	if len(line) > 7*longestValue || strings.Count(line, "... (400000 bytes)") != 6 ||
		!strings.Contains(line, `"short":"kept"`) || !strings.Contains(line, `"number":7`) {
		t.Errorf("%d bytes: %.300s", len(line), line)
	}
	if fields[0].String != long {
		t.Error("the caller's field is changed")
	}
}

// TestLinesOfADaemonAreBounded: a daemon's lines have a limited length altogether in a time, for any cause.
func TestLinesOfADaemonAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		to, err := New(Options{Level: "debug", Format: "json"}, &out)
		if err != nil {
			t.Fatal(err)
		}
		for range 100_000 {
			to.Warn("an object is odd", zap.String("object", strings.Repeat("x", 1000)))
		}
		if got := out.Len(); got > ofAll.most+1<<20 || got < ofAll.most/2 {
			t.Errorf("%d bytes at once, want about %d", got, ofAll.most)
		}
		out.Reset()
		time.Sleep(time.Minute)
		for range 100_000 {
			to.Warn("an object is odd", zap.String("object", strings.Repeat("x", 1000)))
			to.Debug("somebody has asked for it")
		}
		lines := strings.Split(out.String(), "\n")
		if !strings.Contains(lines[0], "Lines were left out") || strings.Count(out.String(), "somebody") != 100_000 ||
			strings.Count(out.String(), "odd") > 10_000 {
			t.Errorf("a minute later %d lines, first %s", len(lines), lines[0])
		}
	})
}

type text string

func (t text) String() string { return string(t) }
