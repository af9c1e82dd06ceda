package logging

import (
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/klog/v2"
)

// TestLinesOfLibrariesAreBounded: whatever makes a library log, there are only so many lines in a time, and how many
// were left out is told. The daemon's own are not counted, nor are those of a level that is off.
func TestLinesOfLibrariesAreBounded(t *testing.T) {
	restore(t)
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zapcore.InfoLevel)
		own := zap.New(core)
		Capture(own)
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
