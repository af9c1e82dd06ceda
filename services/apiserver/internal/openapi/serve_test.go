package openapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// The documents are built for the first who asks, stay for ten minutes after the last, and are built again after that.
func TestDocumentsStayWhileSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		builds := 0
		d := &documents{build: func() http.Handler {
			builds++
			return http.NotFoundHandler()
		}}
		synctest.Wait()
		for _, row := range []struct {
			pause time.Duration
			want  int
		}{
			{time.Hour, 1}, {0, 1}, {9*time.Minute + 59*time.Second, 1}, {9*time.Minute + 59*time.Second, 1},
			{10*time.Minute + time.Second, 2}, {time.Minute, 2}, {time.Hour, 3},
		} {
			time.Sleep(row.pause)
			synctest.Wait()
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi/v2", http.NoBody))
			if w.Code != http.StatusNotFound || builds != row.want {
				t.Errorf("%v later: %d after %d builds, want %d", row.pause, w.Code, builds, row.want)
			}
		}
		time.Sleep(time.Hour)
		if d.mu.Lock(); d.built != nil {
			t.Error("the documents are still there an hour after the last request")
		}
		d.mu.Unlock()
	})
}
