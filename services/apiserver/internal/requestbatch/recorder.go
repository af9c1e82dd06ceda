package requestbatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/batch"
)

// recorder keeps what is answered, as long as there is room for it.
type recorder struct {
	room   *room
	header http.Header
	status int
	body   bytes.Buffer
	// took is how many bytes of the room the body holds, beyond the ordinary.
	took int64
	// lost is how long the answer was for which there was no room; 0 where there was.
	lost int64
}

func (r *room) recorder() *recorder { return &recorder{room: r, header: http.Header{}} }

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter. What there is no room for counts as written: the request is done all the
// same.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.lost == 0 && r.reserve(int64(r.body.Len()+len(p))) {
		return r.body.Write(p)
	}
	r.lost += int64(r.body.Len() + len(p))
	r.drop()
	return len(p), nil
}

// reserve takes room for a body of so many bytes.
func (r *recorder) reserve(length int64) bool {
	more := length - r.room.Ordinary - r.took
	if more <= 0 {
		return true
	}
	if !r.room.take(more) {
		return false
	}
	r.took += more
	return true
}

// drop forgets the body and gives its room back.
func (r *recorder) drop() {
	r.body = bytes.Buffer{}
	r.room.give(r.took)
	r.took = 0
}

// answer is what was recorded. What did not fit keeps its status; a Status in its place says what became of the
// request.
func (r *recorder) answer(at int) batch.Answer {
	r.WriteHeader(http.StatusOK)
	if r.lost > 0 {
		omitted.Inc()
		r.header.Set(batch.OmittedHeader, strconv.FormatInt(r.lost, 10))
		r.header.Del("Content-Encoding")
		r.write(leftOut(r.status, r.lost, r.room.PerBatch))
	}
	return batch.Answer{Item: at, Status: r.status, Header: r.header, Body: r.body.Bytes()}
}

// broken makes an error the answer, whatever has been written, in the form that every client reads: none of it can
// break off.
func (r *recorder) broken(err error) {
	r.drop()
	r.header, r.lost = http.Header{}, 0
	status := apierrors.NewInternalError(err).Status()
	r.status = int(status.Code)
	r.write(status)
}

func (r *recorder) write(status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	r.header.Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(&r.body).Encode(status)
}

// leftOut is the Status in place of an answer of so many bytes, for which there was no room.
func leftOut(code int, length, room int64) metav1.Status {
	why := fmt.Sprintf("its answer of %d bytes is left out: those of a batch that wait to be sent have at most %d "+
		"bytes together, less while other batches have much", length, room)
	status := metav1.Status{Code: int32(code), Reason: "AnswerLeftOut"}
	if code < http.StatusBadRequest {
		status.Status, status.Message = metav1.StatusSuccess, "the request was done; "+why
	} else {
		status.Status, status.Message = metav1.StatusFailure, "the request was refused; "+why
	}
	return status
}
