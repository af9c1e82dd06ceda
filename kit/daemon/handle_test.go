package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestAHandleTellsHowTheWorkEnded(t *testing.T) {
	broken := errors.New("disk full")
	for name, test := range map[string]struct {
		work func(context.Context) error
		end  func(*Handle) error
		want error
	}{
		"stopped":       {func(ctx context.Context) error { <-ctx.Done(); return nil }, (*Handle).Stop, nil},
		"failed":        {func(context.Context) error { return broken }, (*Handle).Wait, broken},
		"failed at end": {func(ctx context.Context) error { <-ctx.Done(); return broken }, (*Handle).Stop, broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := Go(t.Context(), test.work)
				if err := test.end(h); !errors.Is(err, test.want) {
					t.Errorf("ended with %v, want %v", err, test.want)
				}
				<-h.Done()
			})
		})
	}
}

func TestAHandleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
		synctest.Wait()
		select {
		case <-h.Done():
			t.Error("stopped by itself")
		default:
		}
		cancel()
		if err := h.Wait(); err != nil {
			t.Error(err)
		}
	})
}
